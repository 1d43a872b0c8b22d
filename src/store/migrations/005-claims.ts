import type { Migration } from "./migration.ts";

/**
 * Claims and who waits for them (records/claims). A resource is stored with its key: the elements before the first wildcard, each
 * closed by "/". Two resources can only overlap when one key is a prefix of the other.
 */
export const claims: Migration = {
  version: 5,
  name: "claims",
  statements: [
    // Rows to lock: one per holder, some per first element of a resource. Nothing is read from them.
    {
      sqlite: "create table claim_locks (name text primary key, used_at bigint not null) without rowid",
      postgres: 'create table claim_locks (name text collate "C" primary key, used_at bigint not null)',
    },
    {
      sqlite: `create table claims (fence integer primary key, name text not null, key text not null, pattern integer not null, holder text not null,
        mode text not null, taken_at bigint not null, expires_at bigint not null, max_until bigint not null)`,
      postgres: `create table claims (fence bigint primary key, name text collate "C" not null, key text collate "C" not null, pattern integer not null,
        holder text not null, mode text not null, taken_at bigint not null, expires_at bigint not null, max_until bigint not null)`,
    },
    "create index claims_by_key on claims (key)",
    "create index claims_by_name on claims (name, fence)",
    "create index claims_by_holder on claims (holder, expires_at)",
    "create index claims_by_expiry on claims (expires_at)",
    // In the order of their numbers. `node` is the process that waits; it keeps all its rows alive with one statement.
    {
      sqlite: `create table claim_waiters (id integer primary key, name text not null, key text not null, pattern integer not null, holder text not null,
        mode text not null, node text not null, since bigint not null, alive_until bigint not null)`,
      postgres: `create table claim_waiters (id bigint primary key, name text collate "C" not null, key text collate "C" not null, pattern integer not null,
        holder text not null, mode text not null, node text not null, since bigint not null, alive_until bigint not null)`,
    },
    "create index claim_waiters_by_key on claim_waiters (key)",
    "create index claim_waiters_by_name on claim_waiters (name)",
    "create index claim_waiters_by_holder on claim_waiters (holder)",
    "create index claim_waiters_by_node on claim_waiters (node)",
  ],
};
