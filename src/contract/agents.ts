import { z } from "zod";

const STATES = ["active", "paused", "archived", "quarantined"] as const;

/** One agent as it is now. */
export const agentView = z.object({
  id: z.string(),
  model: z.string(),
  state: z.enum(STATES),
  /** Why it is not active; null when it is. */
  because: z.string().nullable(),
  /** Why it cannot answer although it is active: its model has no provider or no key. Null when it can. */
  problem: z.string().nullable().default(null),
  default: z.boolean(),
  roles: z.array(z.string()),
  /** Turns that run now, and turns that wait for their time or for the agent. */
  running: z.number(),
  waiting: z.number(),
});
export type AgentView = z.output<typeof agentView>;

/** To agents and guests, others are names. */
export const agentName = z.object({ id: z.string() });
export const agentList = z.object({ agents: z.array(z.union([agentView, agentName])), revision: z.number() });
/** As overseers see it. */
export const fullAgentList = z.object({ agents: z.array(agentView), revision: z.number() });
export type FullAgentList = z.output<typeof fullAgentList>;

/** Everything that holds for one agent, inherited values included; secrets by name. */
export const agentDetails = agentView.extend({
  personality: z.string().nullable(),
  tools: z.array(z.unknown()),
  sees: z.array(z.string()),
  dm_scope: z.string(),
  group_scope: z.string(),
  memory_scope: z.string(),
  workspace_scope: z.string(),
  sandbox: z.string(),
  budget: z.record(z.string(), z.number()),
  shared_paths: z.array(z.object({ path: z.string(), mode: z.string(), name: z.string().optional() })),
  env: z.array(z.string()),
  mcp: z.array(z.string()),
  subagents: z.object({
    model: z.string().nullable(),
    max_depth: z.number(),
    max_children: z.number(),
    agents: z.array(z.object({ id: z.string(), rights: z.string() })),
  }),
  bindings: z.number(),
  revision: z.number(),
});
export type AgentDetails = z.output<typeof agentDetails>;

export const restartedAgent = agentView.extend({ restarted: z.array(z.string()) });
export type RestartedAgent = z.output<typeof restartedAgent>;

const configProblem = z.object({
  severity: z.enum(["error", "warning"]),
  code: z.string(),
  file: z.string(),
  line: z.number(),
  column: z.number(),
  path: z.string(),
  message: z.string(),
  fix: z.string(),
});

/** One text of the config that a daemon has taken or refused. */
export const configRevision = z.object({
  number: z.number(),
  hash: z.string(),
  at: z.number(),
  state: z.enum(["applied", "rejected"]),
  /** The name of the node that has seen it. */
  node: z.string(),
  /** False: a secret is written in it, and the other nodes cannot read it. */
  shared: z.boolean().default(false),
  /** In words. */
  changes: z.array(z.string()),
  problems: z.array(configProblem),
  /** Agents whose own section was broken. */
  quarantined: z.array(z.string()),
});
export type ConfigRevision = z.output<typeof configRevision>;

/**
 * `current` is what this node runs on, `file` where its own config stands. `file_state`: its text is what runs (`current`), was applied once
 * (`older`), was never applied (`unknown`), or there is none. `problem`: why the node runs something else than the newest, or its file.
 */
export const configRevisions = z.object({
  current: z.object({
    number: z.number(),
    hash: z.string(),
    file: z.string(),
    file_state: z.enum(["current", "older", "unknown", "none"]).default("current"),
    file_revision: z.number().nullable().default(null),
    problem: z.string().nullable().default(null),
  }),
  revisions: z.array(configRevision),
});
export type ConfigRevisionList = z.output<typeof configRevisions>;
export const revisionQuery = z.object({ limit: z.coerce.number().int().min(1).max(200).default(20) });
