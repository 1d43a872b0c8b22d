import { viewNodes } from "../../acts/view-nodes.ts";
import { type NodeList, nodeList } from "../../contract/nodes.ts";
import type { Store } from "../../store/store.ts";
import { OVERSEERS, type Route, route } from "./route.ts";

/** `here`: the node that answers; `missing`: what agents wait for, as far as it knows. */
export function nodesRoutes(store: Store, here: string, missing: () => NodeList["missing"]): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/nodes",
      summary: "The nodes, what each of them holds now, what waits, and what a node that is gone has left",
      allow: OVERSEERS,
      answers: { 200: nodeList },
      handle: async () => ({ status: 200, body: await store.snapshot((reads) => viewNodes(reads, here, missing())) }),
    }),
  ];
}
