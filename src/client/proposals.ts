import {
  type NewVote,
  type Proposal,
  type ProposalDraft,
  type ProposalFilter,
  type ProposalList,
  proposal,
  proposalList,
} from "../contract/proposals.ts";
import type { ApiClient } from "./api-client.ts";

/** Proposals and votes, as the token's identity. */
export class ProposalsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  open(draft: ProposalDraft): Promise<Proposal> {
    return this.#api.post(proposal, "/api/proposals", draft);
  }

  /** The first vote stands: a repeat answers with the proposal as it is. */
  vote(id: string, vote: NewVote): Promise<Proposal> {
    return this.#api.post(proposal, `/api/proposals/${encodeURIComponent(id)}/votes`, vote);
  }

  read(id: string): Promise<Proposal> {
    return this.#api.get(proposal, `/api/proposals/${encodeURIComponent(id)}`);
  }

  list(filter: ProposalFilter = {}): Promise<ProposalList> {
    return this.#api.get(proposalList, "/api/proposals", filter);
  }
}
