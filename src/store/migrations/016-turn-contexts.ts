import type { Migration } from "./migration.ts";

/** What turns begin with: where a long conversation was summarised, and what their words bring along (records/journal). */
export const turnContexts: Migration = {
  version: 16,
  name: "turn contexts",
  statements: [
    // The step of a run that holds the newest summary of an epoch; null: there is none. `asked`: somebody wants one before the next turn.
    `create table session_summaries (session_key text not null, epoch integer not null, run_id text, step integer, asked integer not null,
      at bigint not null, primary key (session_key, epoch))`,
    "alter table run_contexts add column labels text not null default ''",
    "create index runs_by_merge on runs (merged_into) where merged_into is not null",
  ],
};
