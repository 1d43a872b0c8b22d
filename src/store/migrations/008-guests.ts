import type { Migration } from "./migration.ts";

/**
 * Outside agents that are here now (records/access): one row per process, by the name it bears, and the sessions of its program that
 * are known to be its own.
 */
export const guests: Migration = {
  version: 8,
  name: "guests",
  statements: [
    {
      sqlite: `create table guests (name text primary key, token text not null, client text not null, numbered integer not null,
        process text, workspace text, joined_at bigint not null, expires_at bigint not null) without rowid`,
      postgres: `create table guests (name text collate "C" primary key, token text not null, client text not null, numbered integer not null,
        process text, workspace text, joined_at bigint not null, expires_at bigint not null)`,
    },
    "create index guests_by_expiry on guests (expires_at)",
    "create index guests_by_token on guests (token)",
    "create index guests_by_process on guests (process)",
    {
      sqlite: "create table guest_sessions (session text primary key, token text not null, noted_at bigint not null) without rowid",
      postgres: `create table guest_sessions (session text collate "C" primary key, token text not null, noted_at bigint not null)`,
    },
    "create index guest_sessions_by_token on guest_sessions (token)",
    // The last number given to a guest of each client. It only grows: mail, votes and entries of a name outlive its bearer.
    {
      sqlite: "create table guest_numbers (client text primary key, last bigint not null) without rowid",
      postgres: `create table guest_numbers (client text collate "C" primary key, last bigint not null)`,
    },
  ],
};
