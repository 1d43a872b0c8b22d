import type { Migration } from "./migration.ts";

/** Mail (records/mailbox). */
export const mailbox: Migration = {
  version: 6,
  name: "mailbox",
  statements: [],
};
