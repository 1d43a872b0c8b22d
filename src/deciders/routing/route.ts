import { type Config, defaultAgentOf } from "../../contract/config.ts";
import type { Tier } from "../../contract/wire.ts";
import type { Decision, TraceLine } from "../../kernel/decision.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import type { Address } from "./address.ts";

interface RouteLine extends TraceLine {
  readonly binding: string;
}

export interface RouteDecision extends Decision<RouteLine> {
  /** Null: refused. */
  readonly agent: string | null;
  readonly tier: Tier;
  readonly binding: string | null;
}

export type RoutingConfig = Pick<Config, "agents" | "unrouted">;

/** The operator's own keyboard is no channel: `unrouted: refuse` does not lock them out of `guildhall chat`. */
const OWN_TERMINAL = "terminal";

/** Which agent a message goes to, and why. A pure function of config and address: the same answer on every node. */
export function route(config: RoutingConfig, address: Address): RouteDecision {
  if (config.unrouted === "refuse" && address.platform !== OWN_TERMINAL) {
    return refused("no rule matches this address, and `unrouted: refuse` switches the default agent off");
  }
  const agent = defaultAgentOf(config.agents);
  if (agent === undefined) return refused("no rule matches this address, and there is no default agent");
  return { agent, tier: "default", binding: null, because: `no rule matches this address; ${whyDefault(config, agent)}`, trace: [] };
}

/** The caller has chosen the agent; routing only checks that there is one. */
export function routeNamed(config: RoutingConfig, name: string): RouteDecision {
  if (!Object.hasOwn(config.agents, name)) {
    return refused(`there is no agent "${name}"${didYouMean(name, Object.keys(config.agents))}`);
  }
  return { agent: name, tier: "named", binding: null, because: `the sender named the agent "${name}"`, trace: [] };
}

function refused(because: string): RouteDecision {
  return { agent: null, tier: "none", binding: null, because, trace: [] };
}

function whyDefault(config: RoutingConfig, agent: string): string {
  if (config.agents[agent]?.default) return `"${agent}" has \`default: true\``;
  return agent === "main" ? '"main" is the default agent' : `"${agent}" is the only agent`;
}
