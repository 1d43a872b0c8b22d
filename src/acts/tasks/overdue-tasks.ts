import { readRunInput } from "../../records/sessions/runs.ts";
import { isOverdue, isUntold, markUntold, overdueTasks, untoldTasks } from "../../records/tasks/due-tasks.ts";
import { holdTask, readTask, type TaskEnd } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { endFailedTurnIn } from "../fail-turn.ts";
import { cancelWorkflowIn } from "../workflows/change-workflow.ts";
import { closeTaskIn } from "./close-task.ts";
import { mailTaskEndIn } from "./mail-task-end.ts";
import type { TaskParts } from "./task-parts.ts";

const AT_ONCE = 100;
const UNTOLD_OF_EACH = 20;
const ERROR = { code: "task.timed_out", message: "the task did not end in its time" };

/** Ends what should be over by now, whatever it is doing: a turn that runs has a clock of its own, one that waits has none. For upkeep. */
export async function failOverdueTasks(parts: TaskParts): Promise<number> {
  const due = await overdueTasks(parts.store.read, AT_ONCE);
  for (const id of due) await parts.store.transact("fail overdue task", (tx) => failOverdueIn(parts, tx, id), "locked");
  return due.length;
}

async function failOverdueIn(parts: TaskParts, tx: Tx, id: string): Promise<void> {
  const { queue } = parts.store;
  const before = await readTask(tx, id);
  // A step that is tried again has got more time.
  if (!before || !(await isOverdue(tx, id))) return;
  if (before.kind === "workflow") return void (await cancelWorkflowIn(parts, tx, id, "its time"));
  const run = before.run === null ? undefined : await readRunInput(tx, before.run);
  const isTaken = before.work !== null && (await queue.cancel(tx, before.work));
  if (isTaken && run) return endFailedTurnIn(parts, tx, run, ERROR, null);
  const task = await holdTask(parts.store, tx, id);
  if (task?.endedAt !== null || task.work !== before.work) return;
  await closeTaskIn(parts, tx, task, { status: "failed", result: null, error: ERROR, causedBy: null });
}

/** Whoever could not be told of the end of a task because his mailbox was full. For upkeep. */
export async function tellUntoldEnds(parts: TaskParts): Promise<number> {
  const full = new Set<string>();
  let told = 0;
  for (const { id, pair } of await untoldTasks(parts.store.read, UNTOLD_OF_EACH)) {
    if (full.has(pair)) continue;
    if (await parts.store.transact("tell end of task", (tx) => tellAgainIn(parts, tx, id), "locked")) told++;
    else full.add(pair);
  }
  return told;
}

/** False: there is still no room. */
async function tellAgainIn(parts: TaskParts, tx: Tx, id: string): Promise<boolean> {
  const task = await holdTask(parts.store, tx, id);
  if (!task || !(await isUntold(tx, id))) return true;
  const end = { status: task.status as TaskEnd["status"], result: task.result, error: task.error };
  if (!(await mailTaskEndIn(parts, tx, task, end))) return false;
  await markUntold(tx, id, false);
  return true;
}
