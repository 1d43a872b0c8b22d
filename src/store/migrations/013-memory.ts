import type { Migration } from "./migration.ts";

/** What agents keep beyond a conversation, and the lists they work through in one (records/memory, records/sessions). */
export const memory: Migration = {
  version: 13,
  name: "memory",
  statements: [
    // `scope`: whose it is and where it was saved, encoded; `counted_in`: the line of memory_counts that counts it. `hash` is of the text.
    // A forgotten one has no words left.
    {
      sqlite: `create table memories (id text primary key, agent text not null, circle text not null, person text not null, place text not null,
        scope text not null, counted_in text not null, body text not null, hash text not null, labels text not null, pinned integer not null,
        run_id text, created_at bigint not null, forgotten_at bigint) without rowid`,
      postgres: `create table memories (id text collate "C" primary key, agent text not null, circle text not null, person text not null,
        place text not null, scope text collate "C" not null, counted_in text collate "C" not null, body text not null, hash text not null,
        labels text not null, pinned integer not null, run_id text, created_at bigint not null, forgotten_at bigint)`,
    },
    "create index memories_same on memories (scope, hash) where forgotten_at is null",
    "create index memories_pinned on memories (scope, id) where pinned = 1 and forgotten_at is null",
    "create index memories_by_agent on memories (agent, id) where forgotten_at is null",
    // How much there is below a scope: one line for each limit, so that whoever saves holds it.
    {
      sqlite: `create table memory_counts (scope text primary key, notes bigint not null, pinned_characters bigint not null) without rowid`,
      postgres: `create table memory_counts (scope text collate "C" primary key, notes bigint not null, pinned_characters bigint not null)`,
    },
    // By session and epoch; `items` is JSON.
    {
      sqlite: `create table todo_lists (session_key text not null, epoch integer not null, items text not null, run_id text not null,
        at bigint not null, primary key (session_key, epoch)) without rowid`,
      postgres: `create table todo_lists (session_key text collate "C" not null, epoch integer not null, items text not null, run_id text not null,
        at bigint not null, primary key (session_key, epoch))`,
    },
  ],
};
