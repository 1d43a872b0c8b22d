import type { RunInput } from "../../records/sessions/runs.ts";
import { holdTask } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { settleStepIn } from "../workflows/settle-step.ts";
import { closeTaskIn, type TaskRunEnd } from "./close-task.ts";
import type { TaskParts } from "./task-parts.ts";

/**
 * In the transaction that ends the turn: the task has ended with it, unless it is a step that is tried again. A turn that is not the
 * task's newest has nothing to say about it.
 */
export async function endTaskRunIn(parts: TaskParts, tx: Tx, run: Pick<RunInput, "id" | "task">, end: TaskRunEnd): Promise<void> {
  if (run.task === null) return;
  const task = await holdTask(parts.store, tx, run.task);
  if (!task || task.endedAt !== null || task.run !== run.id) return;
  if (task.kind === "step" && (await settleStepIn(parts, tx, task, end)) === "again") return;
  await closeTaskIn(parts, tx, task, end);
}
