import { type Approval, type ApprovalFilter, type ApprovalList, approval, approvalList, type Verdict } from "../contract/approvals.ts";
import type { ApiClient } from "./api-client.ts";

/** Calls that wait for a person's word. */
export class ApprovalsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(filter: ApprovalFilter = {}): Promise<ApprovalList> {
    return this.#api.get(approvalList, "/api/approvals", filter);
  }

  /** Also by the beginning of its id. */
  answer(id: string, verdict: Verdict): Promise<Approval> {
    return this.#api.post(approval, `/api/approvals/${encodeURIComponent(id)}`, { verdict });
  }
}
