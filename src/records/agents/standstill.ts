import { Failure } from "../../kernel/failure.ts";
import type { Agent } from "./agent.ts";
import type { Revision } from "./revision.ts";

/** Why an agent takes no turns now. */
export interface Standstill {
  readonly failure: Failure;
  /** What has come for it waits until this ends; otherwise it fails with the reason. */
  readonly waits: boolean;
}

/** Null: it may answer. So may one that is not there, which is found out where its turn begins. */
export function standstillOf(agent: Agent | undefined): Standstill | null {
  if (!agent) return null;
  const { id, state, because } = agent;
  switch (state) {
    case "active":
      return null;
    case "paused":
      return { failure: new Failure("agent.paused", `agent ${id} is paused: ${because}`), waits: true };
    case "quarantined":
      return { failure: new Failure("agent.quarantined", `agent ${id} is quarantined: ${because}`), waits: true };
    case "archived":
      return { failure: new Failure("agent.archived", `agent ${id} is archived: ${because}`), waits: false };
  }
}

/** Of whomever a rule names: one whose id is none is not among the agents, and is as broken as those whose section is. */
export function standstillIn({ agents, settings }: Pick<Revision, "agents" | "settings">, id: string): Standstill | null {
  const [problem] = agents.has(id) ? [] : (settings.quarantined.get(id) ?? []);
  if (!problem) return standstillOf(agents.get(id));
  return { failure: new Failure("agent.quarantined", `agent ${id} is quarantined: ${problem.message}`), waits: true };
}

/** Whoever is only paused takes messages, which wait; whoever never answers does not. */
export function refuses({ failure }: Standstill): boolean {
  return failure.code !== "agent.paused";
}
