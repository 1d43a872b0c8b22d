import {
  type Claim,
  type ClaimFilter,
  type ClaimList,
  type ClaimRelease,
  type ClaimRenewalRequest,
  type ClaimRequest,
  claim,
  claimList,
  releasedClaim,
} from "../contract/claims.ts";
import type { ApiClient } from "./api-client.ts";

/** Claims, as the token's identity. */
export class ClaimsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  /** Held by another: `claim.held`. */
  take(request: ClaimRequest): Promise<Claim> {
    return this.#api.post(claim, "/api/claims", request);
  }

  renew(request: ClaimRenewalRequest): Promise<Claim> {
    return this.#api.post(claim, "/api/claims/renew", request);
  }

  async release(request: ClaimRelease): Promise<void> {
    await this.#api.post(releasedClaim, "/api/claims/release", request);
  }

  list(filter: ClaimFilter = {}): Promise<ClaimList> {
    return this.#api.get(claimList, "/api/claims", filter);
  }
}
