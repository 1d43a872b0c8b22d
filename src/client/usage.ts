import { type UsageFilter, type UsageList, usageList } from "../contract/usage.ts";
import type { ApiClient } from "./api-client.ts";

/** What models were asked and what it cost. */
export class UsageClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  read(filter: UsageFilter = {}): Promise<UsageList> {
    return this.#api.get(usageList, "/api/usage", filter);
  }
}
