import type { Migration } from "./migration.ts";

/** Whose words a mail brings, and the turns that mail starts (records/mailbox). */
export const mailLabels: Migration = {
  version: 14,
  name: "mail labels",
  statements: [
    // Of what was sent before nobody knows what it rests on.
    "alter table mail add column label text not null default 'external'",
    // The message of a person that it goes back to; null: it was not sent in a turn.
    "alter table mail add column root_id text",
    "create index mail_waking on mail (box) where wake = 1 and state = 'pending'",
    // One row to lock per agent. `run_id`: a turn that mail has started and that has not opened its mail yet. `wakes` since `since`.
    {
      sqlite: `create table mail_wakes (agent text primary key, run_id text, wakes bigint not null, since bigint not null,
        last_at bigint not null) without rowid`,
      postgres: `create table mail_wakes (agent text collate "C" primary key, run_id text, wakes bigint not null, since bigint not null,
        last_at bigint not null)`,
    },
    // How many turns mail has started that go back to one message.
    {
      sqlite: "create table wake_chains (root text primary key, wakes bigint not null, last_at bigint not null) without rowid",
      postgres: "create table wake_chains (root text primary key, wakes bigint not null, last_at bigint not null)",
    },
    "create index wake_chains_by_time on wake_chains (last_at)",
  ],
};
