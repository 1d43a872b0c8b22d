import type { Migration } from "./migration.ts";

/** A turn reads the epoch it belongs to: what was said before it is not looked through, however much it is. */
export const longConversations: Migration = {
  version: 27,
  name: "long conversations",
  additive: true,
  statements: ["create index transcript_of_epoch on transcript (session_key, epoch, position)"],
};
