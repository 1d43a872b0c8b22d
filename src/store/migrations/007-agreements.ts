import type { Migration } from "./migration.ts";

/** Proposals and votes (records/agreements). */
export const agreements: Migration = {
  version: 7,
  name: "agreements",
  statements: [
    // Caller (who proposed, as the gateway knew it), electorate, rule, pins and writes are JSON, and never change. `external` is 1 for
    // what rests on untrusted input.
    {
      sqlite: `create table proposals (id text primary key, hash text not null, subject text not null, proposer text not null, caller text not null,
        electorate text not null, rule text not null, deadline bigint not null, pins text not null, writes text not null, external integer not null,
        state text not null, because text, opened bigint not null, created_at bigint not null, decided_at bigint)`,
      postgres: `create table proposals (id text collate "C" primary key, hash text not null, subject text not null, proposer text not null,
        caller text not null, electorate text not null, rule text not null, deadline bigint not null, pins text not null, writes text not null,
        external integer not null, state text not null, because text, opened bigint not null, created_at bigint not null, decided_at bigint)`,
    },
    "create index proposals_due on proposals (deadline) where state = 'open'",
    "create index proposals_open on proposals (id) where state = 'open'",
    `create table votes (proposal text not null, voter text not null, vote text not null, hash text not null, at bigint not null,
      primary key (proposal, voter))`,
    // Who may see a proposal: the proposer and the electorate.
    {
      sqlite: "create table proposal_viewers (viewer text not null, proposal text not null, primary key (viewer, proposal)) without rowid",
      postgres: `create table proposal_viewers (viewer text not null, proposal text collate "C" not null, primary key (viewer, proposal))`,
    },
    // How many proposals somebody has open; one row to lock, so that the limit holds whoever asks at once.
    "create table proposers (name text primary key, open bigint not null)",
  ],
};
