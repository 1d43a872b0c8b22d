import { defaultAgentOf } from "../../contract/config.ts";
import type { Tier } from "../../contract/wire.ts";
import type { Decision, TraceLine } from "../../kernel/decision.ts";
import { didYouMean } from "../../kernel/nearest.ts";

export interface RouteLine extends TraceLine {
  readonly binding: string;
}

export interface RouteDecision extends Decision<RouteLine> {
  /** Null: refused. */
  readonly agent: string | null;
  readonly tier: Tier;
  /** The rule in words; null where none decided. */
  readonly binding: string | null;
  /** Rules that the trace leaves out; absent: none. */
  readonly omitted?: number;
  /** Of the config that it follows from; absent until a message is admitted by it. */
  readonly revision?: number;
}

export type NamedAgents = Readonly<Record<string, { readonly default?: boolean | undefined }>>;

/** The caller has chosen the agent; routing only checks that there is one. */
export function routeNamed(agents: NamedAgents, name: string): RouteDecision {
  if (!Object.hasOwn(agents, name)) return refused(`there is no agent "${name}"${didYouMean(name, Object.keys(agents))}`);
  return { agent: name, tier: "named", binding: null, because: `the sender named the agent "${name}"`, trace: [] };
}

/** Where a message goes that no rule matches. */
export function routeUnmatched(agents: NamedAgents, unrouted: "default" | "refuse"): RouteDecision {
  if (unrouted === "refuse") return refused("no rule matches this address, and `unrouted: refuse` switches the default agent off");
  const agent = defaultAgentOf(agents);
  if (agent === undefined) return refused("no rule matches this address, and there is no default agent");
  return { agent, tier: "default", binding: null, because: `no rule matches this address; ${whyDefault(agents, agent)}`, trace: [] };
}

function refused(because: string): RouteDecision {
  return { agent: null, tier: "none", binding: null, because, trace: [] };
}

function whyDefault(agents: NamedAgents, agent: string): string {
  if (agents[agent]?.default) return `"${agent}" has \`default: true\``;
  return agent === "main" ? '"main" is the default agent' : `"${agent}" is the only agent`;
}
