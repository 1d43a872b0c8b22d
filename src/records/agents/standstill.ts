import { Failure } from "../../kernel/failure.ts";
import type { Agent } from "./agent.ts";

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
