import { AgentsClient } from "../client/agents.ts";
import { ApiClient } from "../client/api-client.ts";
import { ApprovalsClient } from "../client/approvals.ts";
import { ClaimsClient } from "../client/claims.ts";
import { MailClient } from "../client/mail.ts";
import { PolicyClient } from "../client/policy.ts";
import { PoolsClient } from "../client/pools.ts";
import { ProposalsClient } from "../client/proposals.ts";
import { RoutingClient } from "../client/routing.ts";
import { SessionsClient } from "../client/sessions.ts";

/** The whole API of a daemon as functions, for one token. */
export class GuildhallClient {
  readonly api: ApiClient;
  readonly agents: AgentsClient;
  readonly sessions: SessionsClient;
  readonly approvals: ApprovalsClient;
  readonly pools: PoolsClient;
  readonly claims: ClaimsClient;
  readonly mail: MailClient;
  readonly proposals: ProposalsClient;
  readonly routing: RoutingClient;
  readonly policy: PolicyClient;

  constructor(url: string, token: string) {
    const api = new ApiClient(url, token);
    this.api = api;
    this.agents = new AgentsClient(api);
    this.sessions = new SessionsClient(api);
    this.approvals = new ApprovalsClient(api);
    this.pools = new PoolsClient(api);
    this.claims = new ClaimsClient(api);
    this.mail = new MailClient(api);
    this.proposals = new ProposalsClient(api);
    this.routing = new RoutingClient(api);
    this.policy = new PolicyClient(api);
  }
}
