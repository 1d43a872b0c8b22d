import { type NodeList, nodeList } from "../contract/nodes.ts";
import type { ApiClient } from "./api-client.ts";

/** Who is there, and what each of them holds. */
export class NodesClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(): Promise<NodeList> {
    return this.#api.get(nodeList, "/api/nodes");
  }
}
