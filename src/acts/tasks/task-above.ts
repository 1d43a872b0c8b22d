import type { Run } from "../../contract/wire.ts";
import { isOver } from "../../contract/wire.ts";
import { readTask } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "./task-parts.ts";

/** What stands above a task that is to be opened. */
export interface Above {
  /** The turn whose call it is, and its agent; null: nobody's. */
  readonly run: { readonly id: string; readonly agent: string; readonly isOver: boolean } | null;
  readonly task: string | null;
  readonly root: string | null;
  /** False: there is nothing above it. */
  readonly isParent: boolean;
  /** Of whoever opens it: a person is at 0, and so is the turn that answers him. */
  readonly depth: number;
  /** The smallest along the chain. */
  readonly maxDepth: number;
  readonly chain: readonly string[];
}

const NOTHING: Above = { run: null, task: null, root: null, isParent: false, depth: 0, maxDepth: Number.MAX_SAFE_INTEGER, chain: [] };

/** Of the agent elsewhere that asks: what is known of its chain there. */
export function aboveElsewhere(depth: number, maxDepth: number, chain: readonly string[]): Above {
  return { ...NOTHING, isParent: true, depth, maxDepth, chain };
}

/** Holds the turn until the transaction ends, so that what is counted below it stays as it was counted. */
export async function holdAbove({ store, agents }: TaskParts, tx: Tx, runId: string | null, elsewhere: Above = NOTHING): Promise<Above> {
  if (runId === null) return elsewhere;
  const run = await tx.get<{ agent: string | null; status: Run["status"]; task_id: string | null; root_id: string | null }>`
    select agent, status, task_id, root_id from runs where id = ${runId} ${store.dialect.forUpdate}`;
  if (!run || run.agent === null) return { ...NOTHING, isParent: true, run: { id: runId, agent: "", isOver: true } };
  const task = run.task_id === null ? undefined : await readTask(tx, run.task_id);
  // As the config says now: a limit that was lowered holds at once.
  const own = agents.current.agents.get(run.agent)?.subagents.maxDepth ?? 0;
  return {
    run: { id: runId, agent: run.agent, isOver: isOver(run.status) },
    task: run.task_id,
    root: run.root_id ?? runId,
    isParent: true,
    depth: task?.depth ?? 0,
    maxDepth: Math.min(task?.maxDepth ?? Number.MAX_SAFE_INTEGER, own),
    chain: task && task.chain.length > 0 ? task.chain : [run.agent],
  };
}
