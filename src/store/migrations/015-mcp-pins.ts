import type { Migration } from "./migration.ts";

/** Which tools an agent's MCP server had when they were taken, and what a person was asked when it had others (records/mcp). */
export const mcpPins: Migration = {
  version: 15,
  name: "mcp pins",
  statements: [
    // `tools` is JSON and `hash` is of it. `asked_*`: the list that is not the pinned one, and the question about it.
    `create table mcp_pins (agent text not null, server text not null, hash text not null, tools text not null, pinned_at bigint not null,
      asked_hash text, asked_id text, asked_at bigint, primary key (agent, server))`,
  ],
};
