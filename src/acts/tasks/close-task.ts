import { endTask, type StoredTask, type TaskEnd } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { sendReplyIn } from "../send-reply.ts";
import { leaveRemoteIn } from "./leave-remote.ts";
import type { TaskParts } from "./task-parts.ts";
import { tellTaskEndIn } from "./tell-task-end.ts";

/** How a turn that was somebody's task has ended. */
export type TaskRunEnd = TaskEnd & {
  /** The event of the turn's end; null: nobody's turn was in it. */
  readonly causedBy: number | null;
  /** Whoever would be told has ended it himself, or has ended with it. */
  readonly quietly?: boolean;
};

/** The task has ended: whoever waits for it goes on, and whoever does not is told. */
export async function closeTaskIn(parts: TaskParts, tx: Tx, task: StoredTask, end: TaskRunEnd): Promise<void> {
  if (!(await endTask(tx, task.id, end))) return;
  const [closed] = await parts.store.ledger.append(tx, {
    type:
      end.status === "completed"
        ? "task.completed"
        : end.status === "cancelled"
          ? "task.cancelled"
          : end.status === "unknown"
            ? "task.lost"
            : "task.failed",
    actor: task.agent ?? task.from,
    subject: ["task", task.id],
    causedBy: end.causedBy,
    data: { kind: task.kind, run: task.run, ...(end.error ? { error: end.error } : {}) },
  });
  await tellTaskEndIn(parts, tx, task, end);
  await tellPlaceIn(parts, tx, task, end, closed as number);
  await leaveRemoteIn(parts, tx, task, closed as number);
}

/** To the people of the conversation in which it was asked for. What somebody has cancelled is no news to them. */
async function tellPlaceIn(parts: TaskParts, tx: Tx, { run, spec }: StoredTask, end: TaskRunEnd, causedBy: number): Promise<void> {
  if (!spec.tells || run === null || end.status === "cancelled") return;
  const { place, job } = spec.tells;
  const { result, error } = end;
  const text = error ? `The job ${job} has failed: ${error.message}` : typeof result === "string" ? result : JSON.stringify(result ?? "");
  if (text.trim() !== "") await sendReplyIn(parts, tx, { runId: run, address: place, text, answers: null }, causedBy, true);
}
