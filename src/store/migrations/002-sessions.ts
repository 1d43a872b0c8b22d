import type { Migration } from "./migration.ts";

/** Messages, turns and replies (records/sessions). No foreign keys: a restore loads table by table, in no particular order. */
export const sessions: Migration = {
  version: 2,
  name: "sessions",
  statements: [
    // One row per message of a platform: whoever comes second finds the run of the first.
    `create table inbox (platform text not null, account text not null, external_id text not null, run_id text not null, at bigint not null,
      primary key (platform, account, external_id))`,
    // Agent and session are null when the message was refused. Address, decision, usage and error are JSON.
    `create table runs (id text primary key, agent text, session_key text, status text not null, address text not null, input text not null,
      reply text, decision text not null, usage text, error text, created_at bigint not null, started_at bigint, ended_at bigint)`,
    `create table transcript (session_key text not null, position bigint not null, role text not null, body text not null, run_id text not null,
      at bigint not null, primary key (session_key, position))`,
    `create table outbox (id text primary key, run_id text not null, address text not null, body text not null, state text not null,
      created_at bigint not null, settled_at bigint)`,
  ],
};
