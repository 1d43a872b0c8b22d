import { z } from "zod";

/** In tables, in `nodes:` of an agent, in labels of measurements: a word, not a text. */
export const nodeName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    "a node's name is 1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
  );
export const nodeLabel = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:=/-]{0,62}$/, "a label is 1 to 63 letters, digits and . _ - : = /, beginning with a letter or digit");
export const nodeLabels = z.array(nodeLabel).max(32, "a node has at most 32 labels");

export const NODE_STATES = ["up", "draining", "gone"] as const;

const heldAccount = z.object({ platform: z.string(), account: z.string() });

export const nodeView = z.object({
  /** Of this life of the node. */
  id: z.string(),
  name: z.string(),
  /** `gone`: not heard of for its lease. */
  state: z.enum(NODE_STATES),
  version: z.string(),
  url: z.string(),
  labels: z.array(z.string()),
  startedAt: z.number(),
  seenAt: z.number(),
  /** Since it was heard of. */
  lagMs: z.number(),
  /** Not heard of for so long, it is gone. */
  leaseMs: z.number(),
  /** Of the config, as this node runs it. */
  revision: z.int(),
  /** Why it is not the newest. */
  problem: z.string().nullable(),
  /** What it holds now, by kind of work. */
  turns: z.int(),
  deliveries: z.int(),
  /** Tasks it has agents elsewhere do. */
  remote: z.int(),
  /** Of all that, what has been due for longest: since when. */
  oldestSince: z.number().nullable(),
  accounts: z.array(heldAccount),
  /** Claims that others have taken over from it. */
  taken: z.int(),
});
export type NodeView = z.output<typeof nodeView>;

/** `until`: when the last of its leases ends, and whoever is next may take it up. */
export const orphanedWork = z.object({ node: z.string(), name: z.string().nullable(), count: z.int(), until: z.number() });
export type OrphanedWork = z.output<typeof orphanedWork>;

export const waitingWork = z.object({
  kind: z.string(),
  /** Could be claimed now. */
  ready: z.int(),
  /** Behind others of its conversation. */
  queued: z.int(),
  /** For its time, or for somebody's word. */
  parked: z.int(),
  dead: z.int(),
  /** How long the first of those that could be claimed has been waiting. */
  oldestMs: z.number().nullable(),
});
export type WaitingWork = z.output<typeof waitingWork>;

/** All of one moment, by the database's clock. */
export const nodeList = z.object({
  now: z.number(),
  /** The node that answers. */
  here: z.string(),
  /** The newest of the config. */
  revision: z.int(),
  nodes: z.array(nodeView),
  waiting: z.array(waitingWork),
  /** Held by nobody who is alive: a takeover waits for the end of these leases. */
  orphaned: z.array(orphanedWork),
  /** Agents whose nodes are not there, by what is missing. */
  missing: z.array(z.object({ problem: z.string(), agents: z.array(z.string()) })).default([]),
  /** Events that no seal covers yet. */
  unsealed: z.int(),
});
export type NodeList = z.output<typeof nodeList>;
