import { AgentsClient } from "../client/agents.ts";
import { ApiClient } from "../client/api-client.ts";
import { ApprovalsClient } from "../client/approvals.ts";
import { ChannelsClient } from "../client/channels.ts";
import { ClaimsClient } from "../client/claims.ts";
import { GuestsClient } from "../client/guests.ts";
import { MailClient } from "../client/mail.ts";
import { MemoryClient } from "../client/memory.ts";
import { NodesClient } from "../client/nodes.ts";
import { PolicyClient } from "../client/policy.ts";
import { PoolsClient } from "../client/pools.ts";
import { ProposalsClient } from "../client/proposals.ts";
import { RoutingClient } from "../client/routing.ts";
import { RunsClient } from "../client/runs.ts";
import { SchedulesClient } from "../client/schedules.ts";
import { SessionsClient } from "../client/sessions.ts";
import { TasksClient } from "../client/tasks.ts";
import { UsageClient } from "../client/usage.ts";
import { WorkflowsClient } from "../client/workflows.ts";

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
  readonly memory: MemoryClient;
  readonly runs: RunsClient;
  readonly usage: UsageClient;
  readonly guests: GuestsClient;
  readonly workflows: WorkflowsClient;
  readonly tasks: TasksClient;
  readonly schedules: SchedulesClient;
  readonly channels: ChannelsClient;
  readonly nodes: NodesClient;

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
    this.memory = new MemoryClient(api);
    this.runs = new RunsClient(api);
    this.usage = new UsageClient(api);
    this.guests = new GuestsClient(api);
    this.workflows = new WorkflowsClient(api);
    this.tasks = new TasksClient(api);
    this.schedules = new SchedulesClient(api);
    this.channels = new ChannelsClient(api);
    this.nodes = new NodesClient(api);
  }
}
