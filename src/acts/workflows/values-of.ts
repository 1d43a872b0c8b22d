import type { CurrentValue } from "../../records/pools/step-memory.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import type { GoingWorkflow } from "./going-workflow.ts";

/**
 * What these keys hold now, for conditions, lists and outputs. They tell it to whoever started the run: so of a pool that is not the run's own,
 * an agent's run knows what that agent may read and nothing else.
 */
export async function valuesOf(
  { pools }: TaskParts,
  tx: Tx,
  { known }: GoingWorkflow,
  keys: readonly string[],
): Promise<ReadonlyMap<string, CurrentValue>> {
  const { pool, granted, definition } = known;
  if (pool === null || keys.length === 0) return new Map();
  if (definition.pool === undefined || granted === null) return pools.currentValuesIn(tx, pool, keys);
  const starter = { kind: "agent", name: granted.agent, roles: [], run: null, step: null, call: null } as const;
  return pools.currentValuesIn(tx, pool, await pools.readableIn(tx, starter, pool, keys));
}
