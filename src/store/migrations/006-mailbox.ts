import type { Migration } from "./migration.ts";

/**
 * Mail (records/mailbox). `seq` gives the order and comes from the source of fences, so it grows across restores too. `box` is the
 * recipient until the mail is settled, then null. `due_at` is when it changes by itself: a delayed one can be handed out again, a
 * pending one expires, a leased one comes back, a settled one is forgotten.
 */
export const mailbox: Migration = {
  version: 6,
  name: "mailbox",
  statements: [
    // One row to lock per recipient. Nothing is read from it.
    "create table mailboxes (name text primary key, used_at bigint not null)",
    `create table mail (id text primary key, seq bigint not null, box text, sender text not null, recipient text not null, conversation text not null,
      type text not null, content text not null, priority integer not null, readers text not null, wake integer not null, state text not null,
      fence bigint not null, attempts integer not null, leased_by text, visible_at bigint not null, due_at bigint not null,
      expires_at bigint not null, created_at bigint not null, first_received_at bigint, settled_at bigint)`,
    "create index mail_open on mail (box, state, priority desc, seq)",
    "create index mail_quota on mail (box, sender)",
    "create index mail_due on mail (due_at)",
    "create index mail_by_recipient on mail (recipient, seq)",
    "create index mail_by_sender on mail (sender, seq)",
    "create unique index mail_by_seq on mail (seq)",
    {
      sqlite: "create table mail_readers (reader text not null, seq bigint not null, primary key (reader, seq)) without rowid",
      postgres: "create table mail_readers (reader text not null, seq bigint not null, primary key (reader, seq))",
    },
    "create index mail_readers_by_seq on mail_readers (seq)",
  ],
};
