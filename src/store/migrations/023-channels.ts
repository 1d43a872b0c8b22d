import type { Migration } from "./migration.ts";

/** Accounts on chat platforms (records/channels), whom they let in, and how far a reply has got (records/sessions). */
export const channels: Migration = {
  version: 23,
  name: "channels",
  statements: [
    // `cursor`: where the platform goes on, JSON; written in the transaction of what came before it, by the holder of the lease alone.
    `create table channel_accounts (platform text not null, account text not null, cursor text, state text not null, problem text, name text,
      node text, since bigint not null, primary key (platform, account))`,
    // Whoever has written without being on the list. `code`: what they show an owner, hashed; null once they are paired.
    `create table pairings (platform text not null, account text not null, peer text not null, state text not null, code text,
      messages bigint not null, asked_at bigint not null, expires_at bigint, paired_at bigint, paired_by text,
      primary key (platform, account, peer))`,
    "create unique index pairings_by_code on pairings (code) where code is not null",
    "create index pairings_pending on pairings (platform, account, expires_at) where state = 'pending'",
    // What came with the message: who sent it, what it quotes, which files. JSON.
    "alter table runs add column origin text",
    // `parts`: how it is cut, JSON; `sent`: the platform's ids of what has arrived, JSON; `intended`: the part that is on its way and may
    // have arrived. `draft`: the id of a message that shows it already. `unclear`: how often nobody knew.
    "alter table outbox add column account text",
    "alter table outbox add column parts text",
    "alter table outbox add column sent text",
    "alter table outbox add column intended bigint",
    "alter table outbox add column unclear bigint not null default 0",
    "alter table outbox add column answers text",
    "alter table outbox add column draft text",
    "alter table outbox add column files text",
    "alter table outbox add column problem text",
    "create index outbox_open on outbox (account, created_at) where state in ('draft', 'pending')",
    "create unique index outbox_drafts on outbox (run_id) where state = 'draft'",
  ],
};
