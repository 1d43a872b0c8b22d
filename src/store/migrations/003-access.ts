import type { Migration } from "./migration.ts";

/** Tokens (records/access). */
export const access: Migration = {
  version: 3,
  name: "access",
  statements: [],
};
