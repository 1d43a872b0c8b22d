import { usageList, usageQuery } from "../../contract/usage.ts";
import { readUsage } from "../../records/usage/usage.ts";
import type { Store } from "../../store/store.ts";
import { OVERSEERS, type Route, route } from "./route.ts";

export function usageRoutes(store: Store): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/usage",
      summary: "What models were asked and what it cost, by day, model or agent; an agent sees its own",
      allow: [...OVERSEERS, "agent"],
      query: usageQuery,
      answers: { 200: usageList },
      handle: async ({ caller, query }) => {
        const { by, days } = query;
        return { status: 200, body: { by, days, rows: await readUsage(store.read, caller, query) } };
      },
    }),
  ];
}
