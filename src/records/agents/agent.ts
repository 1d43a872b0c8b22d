import {
  type AGENT_STATES,
  type AgentConfig,
  type Config,
  type DmScope,
  defaultAgentOf,
  type GroupScope,
  type PlaceScope,
  type SharedPath,
} from "../../contract/config.ts";
import type { Secret } from "../../contract/secret.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import type { Policy } from "../../deciders/policy/policy.ts";
import { inWords } from "../../settings/config-problem.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { defaultModels } from "./default-models.ts";

const DEFAULT_MAX_STEPS = 50;

/** `quarantined`: its section of the config is broken. The others are what its section says. */
export type AgentState = (typeof AGENT_STATES)[number] | "quarantined";

export interface Subagents {
  /** Of its one-off children, unless a call names another; null: that of the agent itself. */
  readonly model: string | null;
  readonly maxDepth: number;
  readonly maxChildren: number;
  /** Whom it may delegate to by name. */
  readonly agents: readonly { readonly id: string; readonly rights: "narrowed" | "own" }[];
}

/** One agent of one revision of the config, with everything it inherits. Never changes: a new revision has new ones. */
export interface Agent {
  readonly id: string;
  /** The one that answers, if it can. */
  readonly model: string;
  /** All that may, in their order. */
  readonly models: readonly [string, ...string[]];
  readonly maxSteps: number;
  /** Its share where agents wait for each other. */
  readonly weight: number;
  /** What the config says: its own, else everybody's. What it is told in a turn is `personalityOf`, which knows its SOUL.md. */
  readonly personality: string | null;
  readonly hasOwnPersonality: boolean;
  readonly isDefault: boolean;
  /** What mail to `role:<role>` and the like reach it by. */
  readonly roles: readonly string[];
  readonly state: AgentState;
  /** Why it is not active; null when it is. */
  readonly because: string | null;
  /** What the config gives it to call. Made when it is first asked for. */
  readonly grant: Grant;
  /** Other agents whose tasks and sessions it may search; `["*"]`: all. */
  readonly sees: readonly string[];
  /** Outside agents that may give it tasks; `["*"]`: all. */
  readonly guests: readonly string[];
  /** How long its tasks are kept after their end, in milliseconds; null: for ever. */
  readonly retention: number | null;
  readonly dmScope: DmScope;
  readonly groupScope: GroupScope;
  readonly memoryScope: PlaceScope;
  readonly workspaceScope: PlaceScope;
  readonly sharedPaths: readonly SharedPath[];
  /** This agent's secrets only. */
  readonly env: Readonly<Record<string, Secret>>;
  readonly sandbox: NonNullable<AgentConfig["sandbox"]>;
  readonly budget: NonNullable<AgentConfig["budget"]>;
  readonly subagents: Subagents;
  readonly mcp: AgentConfig["mcp"];
  /** Names and labels of the nodes that take its turns; `["*"]`: all; null: nothing is said. */
  readonly nodes: readonly string[] | null;
}

export function agentsOf(settings: Settings, policy: Policy): Map<string, Agent> {
  const { config } = settings;
  const chosen = defaultAgentOf(config.agents);
  return new Map(Object.entries(config.agents).map(([id, own]) => [id, agentOf(settings, policy, id, own, id === chosen)]));
}

function agentOf(settings: Settings, policy: Policy, id: string, own: AgentConfig, isDefault: boolean): Agent {
  const { config } = settings;
  const models = own.model ?? config.model ?? defaultModels(settings);
  return {
    id,
    model: models[0],
    models,
    maxSteps: own.max_steps ?? config.max_steps ?? DEFAULT_MAX_STEPS,
    weight: own.weight,
    personality: own.personality ?? config.personality ?? null,
    hasOwnPersonality: own.personality !== undefined,
    isDefault,
    roles: own.roles,
    ...stateOf(settings, id, own),
    get grant() {
      return policy.grantOf(id);
    },
    sees: own.sees,
    guests: own.guests,
    retention: own.retention ?? config.retention ?? null,
    dmScope: own.dm_scope ?? config.dm_scope ?? "per-channel-peer",
    groupScope: own.group_scope ?? config.group_scope ?? "chat",
    memoryScope: own.memory_scope ?? config.memory_scope ?? "agent",
    workspaceScope: own.workspace_scope ?? config.workspace_scope ?? "agent",
    sharedPaths: own.shared_paths,
    env: own.env,
    sandbox: own.sandbox ?? config.sandbox ?? { kind: "auto", network: undefined },
    // By key: an agent with a limit of its own for a task keeps everybody's limit for a day.
    budget: own.budget === undefined ? (config.budget ?? {}) : { ...config.budget, ...own.budget },
    subagents: subagentsOf(config, own),
    mcp: own.mcp,
    nodes: own.nodes ?? config.nodes ?? null,
  };
}

function stateOf({ quarantined }: Settings, id: string, own: AgentConfig): Pick<Agent, "state" | "because"> {
  const [first, ...others] = quarantined.get(id) ?? [];
  if (first) {
    const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
    return { state: "quarantined", because: `its section of the config is broken: ${inWords(first)}${more}` };
  }
  return { state: own.state, because: own.state === "active" ? null : `the config says \`state: ${own.state}\`` };
}

function subagentsOf(config: Config, { subagents }: AgentConfig): Subagents {
  return {
    model: subagents.model ?? config.subagent.model ?? null,
    maxDepth: subagents.max_depth,
    maxChildren: subagents.max_children,
    agents: subagents.agents,
  };
}

/** The model of a one-off child: the call's own, else what the config says for children, else its parent's. */
export function modelOfChild(parent: Agent, asked: string | undefined): string {
  return asked ?? parent.subagents.model ?? parent.model;
}
