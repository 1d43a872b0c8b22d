import { asFailure } from "../kernel/failure.ts";
import type { Models } from "../kernel/model.ts";
import type { Agent } from "../records/agents/agent.ts";

/** What is worth telling about an agent at the start. */
export interface AgentSummary {
  readonly id: string;
  readonly model: string;
  readonly scripted: boolean;
  /** Why it cannot answer, or null. */
  readonly problem: string | null;
}

export function summaryOf(agent: Agent, models: Models): AgentSummary {
  const { id, model } = agent;
  try {
    return { id, model, scripted: models.resolve(agent.models).scripted, problem: null };
  } catch (error) {
    return { id, model, scripted: false, problem: asFailure(error).message };
  }
}
