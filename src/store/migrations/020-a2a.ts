import type { Migration } from "./migration.ts";

/** Tasks that come from other houses, and tasks that others do for us (records/tasks). */
export const a2a: Migration = {
  version: 20,
  name: "a2a",
  statements: [
    // One row: what this house is called among houses. Made once, by chance; a copy of the database is the same house.
    "create table house (one integer primary key, id text not null)",
    // Held while the open tasks of a caller are counted.
    {
      sqlite: "create table a2a_callers (caller text primary key) without rowid",
      postgres: 'create table a2a_callers (caller text collate "C" primary key)',
    },
    // What the protocol calls a context, of tasks that were asked for by it.
    "alter table tasks add column conversation text",
    "create index tasks_by_conversation on tasks (conversation, id) where conversation is not null",
    "create index tasks_open_of_caller on tasks (opened_by) where kind = 'api' and ended_at is null",
    // `state`: waiting (nothing was sent) → intended (it may have arrived) → sent (the peer has named it `remote_id`) → over.
    // `conversation`: whose and which, JSON. `lost_since`: the peer does not answer. `cancel`: what came of telling it to stop.
    {
      sqlite: `create table remote_tasks (task_id text primary key, peer text not null, conversation text, state text not null, remote_id text,
        context_id text, looks integer not null, lost_since bigint, tries integer not null, cancel text) without rowid`,
      postgres: `create table remote_tasks (task_id text collate "C" primary key, peer text collate "C" not null, conversation text collate "C",
        state text not null, remote_id text, context_id text, looks integer not null, lost_since bigint, tries integer not null, cancel text)`,
    },
    "create index remote_tasks_by_conversation on remote_tasks (peer, conversation, task_id) where conversation is not null",
  ],
};
