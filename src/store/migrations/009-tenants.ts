import type { Migration } from "./migration.ts";

/** What the config was when, and turns whose agent may not answer now (records/agents). */
export const tenants: Migration = {
  version: 9,
  name: "tenants",
  statements: [
    // `text` is the file as it was written, secrets that stand in it masked. `changes` and `problems` are JSON. A rejected text has a row too.
    `create table config_revisions (number bigint primary key, hash text not null, at bigint not null, state text not null, node text not null,
      text text not null, changes text not null, problems text not null)`,
    // By the work item that is parked for it; `revision`: the one whose word it was that the agent waits.
    `create table held_turns (work_id bigint primary key, agent text not null, run_id text not null, revision bigint not null, at bigint not null)`,
    "create index held_turns_by_agent on held_turns (agent)",
    // Of all the runs there ever were, the few that are not over: what each agent has to do.
    "create index runs_open on runs (agent, status) where status in ('queued', 'running', 'waiting')",
  ],
};
