import type { Migration } from "./migration.ts";

/** The tools that models were told of, once for all turns with the same ones: they are most of what a turn is told (records/journal). */
export const toolOffers: Migration = {
  version: 17,
  name: "tool offers",
  statements: ["create table tool_offers (hash text primary key, body text not null)"],
};
