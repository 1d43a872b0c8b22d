import { isOver, type Run } from "../contract/wire.ts";
import { Failure } from "../kernel/failure.ts";
import { readRun } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import { endStoppedRunIn } from "./end-run.ts";
import { endTasksOfRunsIn } from "./tasks/cancel-task.ts";
import { endTaskRunIn } from "./tasks/end-task-run.ts";
import type { TaskParts } from "./tasks/task-parts.ts";
import { sessionLane, type TurnPayload } from "./work-kinds.ts";
import { workOfRun } from "./work-of-run.ts";

interface Waiting {
  readonly id: number;
  readonly payload: unknown;
}

/**
 * Ends every turn of these sessions that waits or runs, and all that it has opened. With its work row gone, a turn that runs commits nothing,
 * whatever it still does.
 * What was asked does not stay in the conversation: the next turn must not take it up again. Answers the runs that were ended.
 */
export async function stopSessionsIn(parts: TaskParts, tx: Tx, sessionKeys: readonly string[], by: string): Promise<string[]> {
  const items: Waiting[] = [];
  for (const key of sessionKeys) items.push(...(await parts.store.queue.inLane(tx, sessionLane(key))));
  return end(parts, tx, items, by);
}

/** Ends one run; one whose message another turn has taken in, together with that turn. Refused for one that has ended already. */
export async function stopRunIn(parts: TaskParts, tx: Tx, runId: string, by: string): Promise<Run> {
  const before = await readRun(tx, runId);
  if (!before) throw new Failure("request.not_found", `there is no run "${runId}"`);
  const work = await workOfRun(parts.store, tx, { id: before.mergedInto ?? runId, sessionKey: before.sessionKey });
  const [ended] = isOver(before.status) || !work ? [] : await end(parts, tx, [work], by);
  const run = (await readRun(tx, runId)) as Run;
  if (ended === undefined) throw new Failure("run.over", `run ${runId} is ${run.status} already`, { details: { status: run.status } });
  return run;
}

async function end(parts: TaskParts, tx: Tx, items: readonly Waiting[], by: string): Promise<string[]> {
  const { store } = parts;
  const removed = await store.queue.cancelAll(
    tx,
    items.map(({ id }) => id),
  );
  const ended: string[] = [];
  const error = { code: "run.stopped", message: `stopped by ${by}` };
  for (const { id, payload } of items) {
    if (!removed.has(id)) continue;
    const { runId, causedBy } = payload as TurnPayload;
    const stopped = await endStoppedRunIn(store, tx, runId, error, by, causedBy);
    ended.push(...stopped.ended);
    await endTasksOfRunsIn(parts, tx, [runId], by, { causedBy: stopped.event });
    if (stopped.run) await endTaskRunIn(parts, tx, stopped.run, { status: "cancelled", result: null, error, causedBy: stopped.event });
  }
  return ended;
}
