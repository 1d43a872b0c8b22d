import { canAnswer, canQuery } from "../../contract/policy.ts";
import { can } from "../../deciders/policy/can.ts";
import type { Policy } from "../../deciders/policy/policy.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { type Route, route } from "./route.ts";

/** `current`: the rules of the moment. */
export function policyRoutes(current: () => Policy): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/agents/:id/can",
      summary: "Whether an agent may call a tool, and which rule decides; an agent may ask about itself",
      allow: ["operator", "reader", "agent"],
      query: canQuery,
      answers: { 200: canAnswer },
      handle: async ({ caller, params, query }) => {
        mayAskAbout(caller, params.id);
        return { status: 200, body: can(current(), params.id, query.tool, query.args) };
      },
    }),
  ];
}

/** Another agent's rules are as if there were no such agent. */
function mayAskAbout(caller: Caller, agent: string): void {
  if (caller.kind === "agent" && caller.name !== agent)
    throw new Failure("agent.unknown", "there is no agent of that name that you may see");
}
