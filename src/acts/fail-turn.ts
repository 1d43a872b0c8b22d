import type { Failure } from "../kernel/failure.ts";
import { voidApprovalsOf } from "../records/access/approvals.ts";
import { readNotedSteps } from "../records/journal/steps.ts";
import { failRun, isByItself, mergedRuns, type RunError, type RunInput, readRunInput, requeueRun } from "../records/sessions/runs.ts";
import { appendTranscript } from "../records/sessions/transcript.ts";
import type { Tx } from "../store/engine.ts";
import type { ClaimedWork, DeadWork } from "../store/work-queue.ts";
import { keepSummaryOfTurn } from "./keep-summary.ts";
import { sendReplyIn } from "./send-reply.ts";
import { endTasksOfRunsIn } from "./tasks/cancel-task.ts";
import { endTaskRunIn } from "./tasks/end-task-run.ts";
import type { TaskParts } from "./tasks/task-parts.ts";
import { returnMailOfTurn } from "./turn-mail.ts";
import type { TurnPayload } from "./work-kinds.ts";

/** An attempt failed: it is tried again after a while, or the run ends here when that cannot help or was tried often enough. */
export async function failTurn(
  parts: TaskParts,
  item: ClaimedWork,
  run: RunInput,
  failure: Failure,
  causedBy: number,
): Promise<"retried" | "failed"> {
  const { store } = parts;
  const error = { code: failure.code, message: failure.message };
  const cannotHelp = failure.entry.retry === "never";
  return store.transact(
    "fail turn",
    async (tx) => {
      // Only the queue knows how many attempts got nowhere: this one may have come further since it was claimed.
      if (cannotHelp) await store.queue.settle(tx, item);
      const over = cannotHelp || (await store.queue.retry(tx, item, failure.message)) === "dead";
      if (over) {
        if (!cannotHelp) await store.queue.cancel(tx, item.id);
        await endFailedTurnIn(parts, tx, run, error, causedBy);
        return "failed";
      }
      await requeueRun(tx, run.id);
      const data = { ...error, attempt: item.attempt };
      await store.ledger.append(tx, { type: "turn.retried", actor: run.agent, subject: ["run", run.id], causedBy, data });
      return "retried";
    },
    "locked",
  );
}

/** Its owners disappeared on every attempt. The failed run is the record that stays; the dead letter goes. */
export async function failDeadTurn(parts: TaskParts, dead: DeadWork): Promise<void> {
  const { store } = parts;
  const { runId, causedBy } = dead.payload as TurnPayload;
  await store.transact(
    "fail dead turn",
    async (tx) => {
      const run = await readRunInput(tx, runId);
      if (!(await store.queue.cancel(tx, dead.id)) || !run) return;
      const error = { code: "internal.bug", message: dead.error ?? "every attempt ended without an answer" };
      await endFailedTurnIn(parts, tx, run, error, causedBy);
    },
    "locked",
  );
}

/** What was asked stays in the conversation: the next turn should know of it. The messages that the turn has taken in fail with it. */
export async function endFailedTurnIn(parts: TaskParts, tx: Tx, run: RunInput, error: RunError, causedBy: number | null): Promise<void> {
  const { store } = parts;
  const merged = await mergedRuns(tx, run.id);
  const said = [{ id: run.id, input: run.input }, ...merged].map(({ id, input }) => ({ role: "user" as const, text: input, run: id }));
  if (!isByItself(run)) await appendTranscript(tx, store.search, run, run.id, said);
  await keepSummaryOfTurn(tx, run, await readNotedSteps(tx, run.id), undefined);
  await returnMailOfTurn(store, tx, run, "failed");
  await voidApprovalsOf(store, tx, run.id, error.code);
  for (const { id } of [run, ...merged]) {
    await failRun(tx, id, error);
    const [failed] = await store.ledger.append(tx, { type: "turn.failed", actor: run.agent, subject: ["run", id], causedBy, data: error });
    if (id !== run.id) continue;
    // Nobody will hear of what it alone waited for.
    await endTasksOfRunsIn(parts, tx, [id], run.agent, { causedBy: failed as number, keepBackground: true });
    await endTaskRunIn(parts, tx, run, { status: "failed", result: null, error, causedBy: failed as number });
    // What exactly went wrong may hold what is none of their business who wrote.
    const text = `I could not answer this (${error.code}). Whoever runs this house finds out more under ${id.slice(0, 12)}.`;
    if (run.task === null)
      await sendReplyIn(parts, tx, { runId: id, address: run.address, text, answers: run.origin?.messageId ?? null }, failed as number);
  }
}
