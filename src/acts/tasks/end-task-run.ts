import type { RunInput } from "../../records/sessions/runs.ts";
import { holdTask, type StoredTask } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { type StepRunEnd, settleStepIn } from "../workflows/settle-step.ts";
import { closeTaskIn } from "./close-task.ts";
import type { TaskParts } from "./task-parts.ts";

/**
 * In the transaction that ends the turn: the task has ended with it, unless it is a step that is tried again. A turn that is not the
 * task's newest has nothing to say about it. `held`: the task, where this transaction holds it already, or the run that it is a step of.
 */
export async function endTaskRunIn(
  parts: TaskParts,
  tx: Tx,
  run: Pick<RunInput, "id" | "task">,
  end: StepRunEnd,
  held?: StoredTask,
): Promise<void> {
  if (run.task === null) return;
  const task = held ?? (await holdTask(parts.store, tx, run.task));
  if (!task || task.endedAt !== null || task.run !== run.id) return;
  if (task.kind === "step" && (await settleStepIn(parts, tx, task, end)) === "again") return;
  await closeTaskIn(parts, tx, task, end);
}
