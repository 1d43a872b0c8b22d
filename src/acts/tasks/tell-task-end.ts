import type { StoredTask, TaskEnd } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "./task-parts.ts";

/** The turn that waits for the task goes on. */
export async function tellTaskEndIn({ store }: TaskParts, tx: Tx, task: StoredTask, _end: TaskEnd, _causedBy: number): Promise<void> {
  if (task.waiter !== null) await store.queue.unpark(tx, task.waiter);
}
