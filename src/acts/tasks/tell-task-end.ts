import { wakeRun } from "../../records/sessions/runs.ts";
import { markUntold } from "../../records/tasks/due-tasks.ts";
import type { StoredTask, TaskEnd } from "../../records/tasks/task-rows.ts";
import { waitsForMore } from "../../records/tasks/task-tree.ts";
import type { Tx } from "../../store/engine.ts";
import type { TurnPayload } from "../work-kinds.ts";
import { mailTaskEndIn } from "./mail-task-end.ts";
import type { TaskParts } from "./task-parts.ts";

/** Whoever waits for the task goes on, once nothing else that he waits for does; for one that nobody waits for, its opener gets mail. */
export async function tellTaskEndIn(
  parts: TaskParts,
  tx: Tx,
  task: StoredTask,
  end: TaskEnd & { readonly quietly?: boolean },
): Promise<void> {
  for (const work of [task.waiter, ...(task.spec.alsoWaiters ?? [])]) if (work !== null) await wakeIn(parts, tx, work);
  if (task.spec.background && !end.quietly && !(await mailTaskEndIn(parts, tx, task, end))) await markUntold(tx, task.id, true);
}

async function wakeIn({ store }: TaskParts, tx: Tx, work: number): Promise<void> {
  // Held first: of two that end at once, the second sees the first.
  const payload = await store.queue.hold(tx, work);
  if (payload === undefined) return;
  const { runId } = payload as TurnPayload;
  if (await waitsForMore(tx, runId, work)) return;
  if (await store.queue.unpark(tx, work)) await wakeRun(tx, runId);
}
