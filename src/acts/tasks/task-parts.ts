import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Pools } from "../../records/pools/pools.ts";
import type { KnownWorkflows } from "../../records/workflows/known-workflows.ts";
import type { ReplyParts } from "../send-reply.ts";

/** What it takes to end a turn that is somebody's task, and to begin whatever follows from that. */
export interface TaskParts extends ReplyParts {
  readonly agents: Pick<AgentRegistry, "current">;
  readonly pools: Pools;
  readonly workflows: KnownWorkflows;
}
