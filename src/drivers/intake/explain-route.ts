import type { RouteExplanation } from "../../contract/routing.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { refuses, standstillIn } from "../../records/agents/standstill.ts";

/** What would become of a message from there, by the rules alone: an agent that a conversation was handed over to is not asked for. */
export function explainRoute(revision: Revision, address: Address, limit?: number): RouteExplanation {
  const { trace, ...decision } = revision.router.explain(address, limit);
  const about = { ...decision, trace: [...trace], address: { ...address, roles: [...address.roles] } };
  if (decision.agent === null) return { ...about, sessionKey: null, state: null, standstill: null, refused: true };
  const standstill = standstillIn(revision, decision.agent);
  const refused = standstill !== null && refuses(standstill);
  return {
    ...about,
    sessionKey: refused ? null : revision.sessionKeys.keyFor(decision.agent, address),
    state: revision.agents.get(decision.agent)?.state ?? (refused ? "quarantined" : "active"),
    standstill: standstill?.failure.message ?? null,
    refused,
  };
}
