import type { Migration } from "./migration.ts";

/** Tokens (records/access). Only their hashes: whoever reads the database cannot act with what is found there. */
export const access: Migration = {
  version: 3,
  name: "access",
  statements: [
    {
      sqlite: `create table tokens (id text primary key, hash text not null, name text, scope text not null, created_at bigint not null,
        created_by text not null, last_used_at bigint, revoked_at bigint) without rowid`,
      postgres: `create table tokens (id text collate "C" primary key, hash text not null, name text, scope text not null, created_at bigint not null,
        created_by text not null, last_used_at bigint, revoked_at bigint)`,
    },
    "create unique index tokens_by_hash on tokens (hash)",
  ],
};
