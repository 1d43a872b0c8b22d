import type { Migration } from "./migration.ts";

/** What a job needs beside its times (records/schedules). */
export const schedules: Migration = {
  version: 21,
  name: "schedules",
  statements: [
    // `look_at`: when somebody looks at it next; later than `next_at` while something is in its way, so that jobs which cannot start now do not stand
    // before those which can. `version`: one more with every change.
    "alter table schedules add column look_at bigint",
    "alter table schedules add column version bigint not null default 1",
    "alter table schedules add column missed bigint not null default 0",
    // For whom and in which conversation an agent made it; `labels` is JSON: what the turn carried in which it was made.
    "alter table schedules add column person text",
    "alter table schedules add column conversation text",
    "alter table schedules add column labels text",
    "drop index schedules_due",
    "create index schedules_due on schedules (look_at) where look_at is not null",
    // Held by whoever adds a job of this agent: they are counted one after another.
    {
      sqlite: "create table schedule_locks (agent text primary key) without rowid",
      postgres: 'create table schedule_locks (agent text collate "C" primary key)',
    },
  ],
};
