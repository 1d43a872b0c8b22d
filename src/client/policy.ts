import { type CanAnswer, type CanQuery, canAnswer } from "../contract/policy.ts";
import type { ApiClient } from "./api-client.ts";

/** Who may call which tool, by the rules of the running daemon. */
export class PolicyClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  can(agent: string, query: CanQuery): Promise<CanAnswer> {
    return this.#api.get(canAnswer, `/api/agents/${encodeURIComponent(agent)}/can`, query);
  }
}
