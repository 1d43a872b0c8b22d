import type { AgreementParts } from "../../acts/decide-proposal.ts";
import type { GuestParts } from "../../acts/end-guest.ts";
import type { ScheduleParts } from "../../acts/schedules/schedule-parts.ts";
import type { Policy } from "../../deciders/policy/policy.ts";
import type { Accept } from "../../drivers/intake/accept.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Live } from "../../kernel/live.ts";
import type { Log } from "../../kernel/log.ts";
import type { Access } from "../../records/access/access.ts";
import type { Approvals } from "../../records/access/approvals.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Claims } from "../../records/claims/claims.ts";
import type { Mailbox } from "../../records/mailbox/mailbox.ts";
import { Memory } from "../../records/memory/memory.ts";
import type { Store } from "../../store/store.ts";
import { a2aRoutes } from "./a2a-routes.ts";
import { type AgentControl, agentsRoutes } from "./agents-routes.ts";
import { approvalsRoutes } from "./approvals-routes.ts";
import { channelsRoutes } from "./channels-routes.ts";
import { claimsRoutes } from "./claims-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import { guestRoutes } from "./guest-routes.ts";
import { hooksRoutes } from "./hooks-routes.ts";
import { mailRoutes } from "./mail-routes.ts";
import { mcpRoutes } from "./mcp-routes.ts";
import { memoryRoutes } from "./memory-routes.ts";
import { messageRoutes } from "./message-routes.ts";
import { nodesRoutes } from "./nodes-routes.ts";
import { openAiRoutes } from "./openai/openai-routes.ts";
import { policyRoutes } from "./policy-routes.ts";
import { poolsRoutes } from "./pools-routes.ts";
import { proposalsRoutes } from "./proposals-routes.ts";
import type { Route } from "./route.ts";
import { routingRoutes } from "./routing-routes.ts";
import { runContextRoutes } from "./run-context-routes.ts";
import { runsRoutes } from "./runs-routes.ts";
import { schedulesRoutes } from "./schedules-routes.ts";
import { type SessionsParts, sessionsRoutes } from "./sessions-routes.ts";
import { type SystemParts, systemRoutes } from "./system-routes.ts";
import { tasksRoutes } from "./tasks-routes.ts";
import { tokenRoutes } from "./token-routes.ts";
import { usageRoutes } from "./usage-routes.ts";
import { workflowsRoutes } from "./workflows-routes.ts";

/** What the routes of all rooms need. A room adds what it needs here, and its list below. */
export interface RouteParts extends SystemParts, SessionsParts {
  readonly store: Store;
  readonly accept: Accept;
  readonly agents: Pick<AgentRegistry, "current">;
  readonly live: Live;
  readonly access: Access;
  readonly approvals: Approvals;
  readonly claims: Claims;
  readonly mailbox: Mailbox;
  readonly agreement: AgreementParts;
  readonly newId: NewId;
  readonly home: string;
  readonly log: Log;
  /** The rules for tools as they are now. */
  readonly policy: () => Policy;
  readonly guests: GuestParts["guests"];
  readonly agentControl: AgentControl;
  readonly schedules: ScheduleParts;
  readonly mcp: (request: Request, caller: Caller) => Promise<Response>;
  readonly hooks: Parameters<typeof hooksRoutes>[0];
  readonly accounts: Parameters<typeof channelsRoutes>[1];
  readonly missingNodes: Parameters<typeof nodesRoutes>[2];
  readonly a2a: (request: Request, caller: Caller, signal: AbortSignal) => Promise<Response>;
}

export function allRoutes(parts: RouteParts): Route[] {
  const { store, accept, live } = parts;
  return [
    ...systemRoutes(parts),
    ...messageRoutes(store, accept, live),
    ...runsRoutes(store, parts.approvals),
    ...runContextRoutes(store),
    ...sessionsRoutes(parts),
    ...tasksRoutes(parts),
    ...memoryRoutes(new Memory(store, parts.newId)),
    ...approvalsRoutes(parts.store, parts.approvals),
    ...eventRoutes(store),
    ...tokenRoutes(parts.access),
    ...usageRoutes(store),
    ...workflowsRoutes({ ...parts, reached: parts.schedules.reached }),
    ...claimsRoutes(parts.claims),
    ...mailRoutes({ ...parts, pools: parts.agreement.pools }),
    ...poolsRoutes({ pools: parts.agreement.pools, mailbox: parts.mailbox, claims: parts.claims }),
    ...proposalsRoutes(parts.agreement, parts.newId),
    ...policyRoutes(parts.policy),
    ...guestRoutes(parts),
    ...routingRoutes(parts.agents, store),
    ...agentsRoutes(parts.agentControl),
    ...mcpRoutes(parts.mcp),
    ...a2aRoutes(parts.a2a),
    ...schedulesRoutes(parts.schedules),
    ...hooksRoutes(parts.hooks),
    ...channelsRoutes(store, parts.accounts),
    ...nodesRoutes(store, parts.node, parts.missingNodes),
    ...openAiRoutes(parts),
  ];
}
