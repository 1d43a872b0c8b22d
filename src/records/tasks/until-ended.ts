import type { LedgerEvent } from "../../contract/events.ts";
import type { Task } from "../../contract/tasks.ts";
import type { Store } from "../../store/store.ts";
import { readTask } from "./task-rows.ts";

/** Waits for the end of a task, wherever it comes about. True: it has ended; false: the signal was first. */
export async function untilTaskEnds(store: Store, id: Task["id"], signal: AbortSignal): Promise<boolean> {
  const from = await store.ledger.horizon();
  const isOver = async (): Promise<boolean> => ((await readTask(store.read, id))?.endedAt ?? null) !== null;
  if (await isOver()) return true;
  for await (const event of store.follow(from, signal)) if (ends(event, id)) return isOver();
  return isOver();
}

function ends({ type, subject }: LedgerEvent, id: string): boolean {
  const over = type === "task.completed" || type === "task.failed" || type === "task.cancelled" || type === "task.lost";
  return over && subject[0] === "task" && subject[1] === id;
}
