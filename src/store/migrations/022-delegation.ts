import type { Migration } from "./migration.ts";

/** What it takes to open a task once, and to find what a turn has opened (records/tasks). */
export const delegation: Migration = {
  version: 22,
  name: "delegation",
  statements: [
    // By whom and what it was asked for, where it was named.
    { sqlite: "alter table tasks add column idempotency text", postgres: 'alter table tasks add column idempotency text collate "C"' },
    "create unique index tasks_by_key on tasks (idempotency) where idempotency is not null",
    // 1: whoever opened it could not be told of its end yet.
    "alter table tasks add column untold integer",
    "create index tasks_untold on tasks (opened_by, agent, id) where untold = 1",
    // Also those that are over: below them something may still go on.
    "create index tasks_by_parent_run on tasks (parent_run, ended_at) where parent_run is not null",
  ],
};
