import {
  type GuardAnswer,
  type GuardQuestion,
  type GuestLease,
  guardAnswer,
  guestLease,
  type JoinedGuest,
  joinedGuest,
  type NewGuest,
} from "../contract/guests.ts";
import type { ApiClient } from "./api-client.ts";

/** Outside agents: joining is the operator's affair, the rest is the guest's own. */
export class GuestsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  join(wanted: NewGuest): Promise<JoinedGuest> {
    return this.#api.post(joinedGuest, "/api/guests", wanted);
  }

  renew(): Promise<GuestLease> {
    return this.#api.post(guestLease, "/api/guests/renew", {});
  }

  leave(): Promise<GuestLease> {
    return this.#api.post(guestLease, "/api/guests/leave", {});
  }

  guard(question: GuardQuestion, signal?: AbortSignal): Promise<GuardAnswer> {
    return this.#api.post(guardAnswer, "/api/guard", question, signal);
  }
}
