import type { Migration } from "./migration.ts";

/**
 * Who is alive (records/nodes), and which node has the files of an agent whose tools touch them. A text of the config may be taken by other
 * nodes where it stands as it was written; until now secrets in it were hidden, and nobody could tell.
 */
export const nodes: Migration = {
  version: 26,
  name: "nodes",
  additive: true,
  statements: [
    `create table nodes (id text primary key, name text not null, home text not null, version text not null, url text not null, labels text not null,
      state text not null, started_at bigint not null, seen_at bigint not null, lease_ms bigint not null, revision bigint not null,
      problem text)`,
    `create index nodes_by_name on nodes (name, seen_at)`,
    `create table agent_homes (agent text primary key, node text not null, at bigint not null)`,
    `alter table config_revisions add column is_whole integer not null default 0`,
    // Claims of a node that others have taken over from it.
    "alter table nodes add column taken bigint not null default 0",
    // A home has the files, whatever its node is called meanwhile.
    `alter table agent_homes add column home text not null default ''`,
  ],
};
