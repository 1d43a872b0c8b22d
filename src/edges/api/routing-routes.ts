import { addressAsked, addressQuery, RECORDED_AT_ONCE, recordedQuery, recordedRoutes, routeExplanation } from "../../contract/routing.ts";
import { explainRoute } from "../../drivers/intake/explain-route.ts";
import { Failure } from "../../kernel/failure.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import { readRecordedAddresses } from "../../records/sessions/recorded-addresses.ts";
import type { Store } from "../../store/store.ts";
import { OVERSEERS, type Route, route } from "./route.ts";

/** More rules than these are not put into words while everybody waits; the command line, which nobody waits for, tells all. */
const MAX_TOLD = 10_000;
const RECORDED = 1_000;

export function routingRoutes(agents: Pick<AgentRegistry, "current">, store: Store): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/route/explain",
      summary: "Which agent a message from an address goes to, by which rule, and why the other rules lost",
      allow: OVERSEERS,
      query: addressQuery,
      answers: { 200: routeExplanation },
      handle: async ({ query }) => {
        const address = addressAsked(query);
        if (!address) throw new Failure("request.malformed", "chat: expected the id of a chat, or `peer`, the id of a sender");
        return { status: 200, body: explainRoute(agents.current, address, MAX_TOLD) };
      },
    }),
    route({
      method: "GET",
      path: "/api/route/recorded",
      summary: "Addresses of messages that were routed, newest first, and the agent each would go to now",
      allow: OVERSEERS,
      query: recordedQuery,
      answers: { 200: recordedRoutes },
      handle: async ({ query }) => {
        const limit = Math.min(query.last ?? RECORDED, RECORDED_AT_ONCE);
        const { found, next } = await readRecordedAddresses(store.read, limit, query.before ?? null);
        const { router } = agents.current;
        const messages = found.map(({ run, at, address }) => ({ run, at, agent: router.route(address).agent, address: wireOf(address) }));
        return { status: 200, body: { messages, next } };
      },
    }),
  ];
}

function wireOf<Address extends { readonly roles: readonly string[] }>(address: Address): Address & { roles: string[] } {
  return { ...address, roles: [...address.roles] };
}
