import {
  type AddressQuery,
  RECORDED_AT_ONCE,
  type RecordedRoutes,
  type RouteExplanation,
  recordedRoutes,
  routeExplanation,
} from "../contract/routing.ts";
import type { ApiClient } from "./api-client.ts";

/** Where messages go, as an operator or a reader. */
export class RoutingClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  explain(address: AddressQuery): Promise<RouteExplanation> {
    return this.#api.get(routeExplanation, "/api/route/explain", address);
  }

  /** The last so many that were routed, newest first, a piece at a time. */
  async *recorded(last: number): AsyncGenerator<RecordedRoutes["messages"], void, void> {
    let before: string | null = null;
    for (let left = last; left > 0; ) {
      const asked = { last: Math.min(left, RECORDED_AT_ONCE), ...(before !== null && { before }) };
      const part: RecordedRoutes = await this.#api.get(recordedRoutes, "/api/route/recorded", asked);
      yield part.messages;
      left -= part.messages.length;
      before = part.next;
      if (before === null) return;
    }
  }
}
