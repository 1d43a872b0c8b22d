import { Failure } from "../../kernel/failure.ts";
import { holdTask, readTask } from "../../records/tasks/task-rows.ts";
import type { TreeOfTasks } from "../../records/tasks/task-tree.ts";
import type { Tx } from "../../store/engine.ts";
import { cancelWorkflowIn, cancelWorkflowsIn } from "../workflows/change-workflow.ts";
import { settleStepIn } from "../workflows/settle-step.ts";
import { closeTaskIn, type TaskRunEnd } from "./close-task.ts";
import { endTreeIn } from "./end-tree.ts";
import type { TaskParts } from "./task-parts.ts";

/**
 * Ends a task and everything below it, in this transaction: after the commit nothing of it commits. Answers the turns that were stopped.
 * Refused for one that is over.
 */
export async function cancelTaskIn(parts: TaskParts, tx: Tx, id: string, by: string, causedBy: number | null = null): Promise<string[]> {
  const task = await readTask(tx, id);
  if (!task) throw new Failure("request.not_found", `there is no task "${id}"`);
  if (task.endedAt !== null) throw new Failure("task.over", `task ${id} is ${task.status} already`, { details: { status: task.status } });
  const error = { code: "run.stopped", message: `cancelled by ${by}` };
  const stopped = await endBelow(parts, tx, { tasks: [id] }, by, causedBy);
  if (task.kind === "workflow") return [...stopped, ...(await cancelWorkflowIn(parts, tx, id, by))];
  const open = await holdTask(parts.store, tx, id);
  if (open?.endedAt !== null) return stopped;
  const end: TaskRunEnd = { status: "cancelled", result: null, error, causedBy };
  if (open.kind === "step" && (await settleStepIn(parts, tx, open, end)) === "again") return stopped;
  // Who did it himself need not be told.
  await closeTaskIn(parts, tx, open, by === open.from ? { ...end, quietly: true } : end);
  return stopped;
}

/** What these turns have opened ends with them. Answers the turns that were stopped. */
export function endTasksOfRunsIn(
  parts: TaskParts,
  tx: Tx,
  runs: readonly string[],
  by: string,
  { causedBy = null, keepBackground = false }: { readonly causedBy?: number | null; readonly keepBackground?: boolean } = {},
): Promise<string[]> {
  return endBelow(parts, tx, { runs, keepBackground }, by, causedBy);
}

async function endBelow(parts: TaskParts, tx: Tx, tree: TreeOfTasks, by: string, causedBy: number | null): Promise<string[]> {
  const error = { code: "run.stopped", message: `cancelled by ${by}` };
  const { runs, workflows } = await endTreeIn(parts, tx, tree, { error, by, causedBy });
  return [...runs, ...(await cancelWorkflowsIn(parts, tx, workflows, by))];
}

/** The same in a transaction of its own. */
export function cancelTask(parts: TaskParts, id: string, by: string): Promise<string[]> {
  return parts.store.transact("cancel task", (tx) => cancelTaskIn(parts, tx, id, by), "locked");
}
