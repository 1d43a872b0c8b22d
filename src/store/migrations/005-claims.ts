import type { Migration } from "./migration.ts";

/** Claims and who waits for them (records/claims). */
export const claims: Migration = {
  version: 5,
  name: "claims",
  statements: [],
};
