import type { Migration } from "./migration.ts";

/** Proposals and votes (records/agreements). */
export const agreements: Migration = {
  version: 7,
  name: "agreements",
  statements: [],
};
