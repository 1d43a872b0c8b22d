import type { RouteDecision } from "../deciders/routing/route.ts";
import { readHandover } from "../records/sessions/handovers.ts";
import type { Reads } from "../store/engine.ts";

/** Where a message goes. */
export interface Placed {
  readonly decision: RouteDecision;
  /** Null exactly when the decision refuses. */
  readonly sessionKey: string | null;
}

/** What must be known of agents to hand a conversation over to them. */
export interface HandoverTargets {
  /** Why this agent takes no conversation over; null: it does. */
  refusal(agent: string): string | null;
  /** The session of the same address with this agent. */
  sessionKey(agent: string): string;
}

/**
 * Where a message goes after what the rules say (`ruled`): to the agent its conversation was handed over to, if that one can take it.
 * Null targets: the sender has named the agent, and no handover counts.
 */
export async function placeMessage(reads: Reads, ruled: Placed, targets: HandoverTargets | null): Promise<Placed> {
  const { decision, sessionKey } = ruled;
  if (sessionKey === null || targets === null) return ruled;
  const handover = await readHandover(reads, sessionKey);
  if (!handover || handover.agent === decision.agent) return ruled;
  const { agent, by } = handover;
  const refusal = targets.refusal(agent);
  if (refusal !== null) {
    const because = `${decision.because}; handed over to ${agent} by ${by}, but ${refusal}`;
    return { decision: { ...decision, because }, sessionKey };
  }
  const because = `handed over to ${agent} by ${by}; the rules say ${decision.agent} (${decision.because})`;
  return { decision: { ...decision, agent, tier: "named", binding: null, because }, sessionKey: targets.sessionKey(agent) };
}
