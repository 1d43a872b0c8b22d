import type { Migration } from "./migration.ts";

/** Pools, entries and their versions, reads (records/pools). */
export const pools: Migration = {
  version: 4,
  name: "pools",
  statements: [],
};
