import type { RouteExplanation } from "../../contract/routing.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { sessionKeyFor } from "../../deciders/routing/session-key.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { standstillOf } from "../../records/agents/standstill.ts";

/** What would become of a message from there, by the rules alone: an agent that a conversation was handed over to is not asked for. */
export function explainRoute(revision: Revision, address: Address, limit?: number): RouteExplanation {
  const { trace, ...decision } = revision.router.explain(address, limit);
  const about = { ...decision, trace: [...trace], address: { ...address, roles: [...address.roles] } };
  if (decision.agent === null) return { ...about, sessionKey: null, state: null, standstill: null, refused: true };
  const agent = revision.agents.get(decision.agent);
  const state = agent?.state ?? "active";
  return {
    ...about,
    sessionKey: sessionKeyFor(revision.settings.config, decision.agent, address),
    state,
    standstill: standstillOf(agent)?.failure.message ?? null,
    refused: state === "archived" || state === "quarantined",
  };
}
