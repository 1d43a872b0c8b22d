import type { Migration } from "./migration.ts";

/** Where owners can be asked in private: where they have written last, by account (records/channels). */
export const ownerChats: Migration = {
  version: 25,
  name: "owner chats",
  statements: [
    `create table owner_chats (platform text not null, account text not null, peer text not null, address text not null, at bigint not null,
      primary key (platform, peer, account))`,
  ],
};
