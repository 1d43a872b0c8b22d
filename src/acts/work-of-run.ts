import { workOfTaskRun } from "../records/tasks/task-rows.ts";
import type { Reads } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { sessionLane, type TurnPayload } from "./work-kinds.ts";

/** The row in the work queue of this turn, if it has one still: by its task where it is a turn of one, else in the lane of its conversation. */
export async function workOfRun(
  { queue }: Store,
  reads: Reads,
  run: { readonly id: string; readonly sessionKey: string | null },
): Promise<{ readonly id: number; readonly payload: unknown } | undefined> {
  const work = await workOfTaskRun(reads, run.id);
  if (work !== null) return queue.item(reads, work);
  if (run.sessionKey === null) return undefined;
  return (await queue.inLane(reads, sessionLane(run.sessionKey))).find(({ payload }) => (payload as TurnPayload).runId === run.id);
}
