import type { NewId } from "../../kernel/ids.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Pools } from "../../records/pools/pools.ts";
import type { KnownWorkflows } from "../../records/workflows/known-workflows.ts";
import type { Store } from "../../store/store.ts";

/** What it takes to end a turn that is somebody's task, and to begin whatever follows from that. */
export interface TaskParts {
  readonly store: Store;
  readonly newId: NewId;
  readonly agents: Pick<AgentRegistry, "current">;
  readonly pools: Pools;
  readonly workflows: KnownWorkflows;
}
