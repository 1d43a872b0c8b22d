import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { Label } from "../kernel/label.ts";
import type { ModelCall, ModelUsage, Said } from "../kernel/model.ts";
import type { StoredContext } from "../records/journal/contexts.ts";
import type { Response, Step } from "../records/journal/steps.ts";
import { completeRun, isByItself, mergedRuns, type RunInput } from "../records/sessions/runs.ts";
import { appendTranscript } from "../records/sessions/transcript.ts";
import { readTask } from "../records/tasks/task-rows.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { Claim, ClaimedWork } from "../store/work-queue.ts";
import { keepSummaryOfTurn } from "./keep-summary.ts";
import { deliveryTenant, type ReplyParts, sendReplyTakenIn } from "./send-reply.ts";
import { endTaskRunIn } from "./tasks/end-task-run.ts";
import { judgeAnswerIn } from "./tasks/judge-answer.ts";
import { mayGoOn } from "./tasks/judgement.ts";
import { sendBackIn, type WentBack } from "./tasks/send-back.ts";
import type { TaskParts } from "./tasks/task-parts.ts";
import type { TurnJournal } from "./turn-journal.ts";
import { ackMailOfTurn } from "./turn-mail.ts";

export interface TurnOutcome {
  readonly text: string;
  readonly steps: readonly Step[];
  /** The answer that ends it, not recorded yet. */
  readonly last: { readonly step: number; readonly response: Response } | null;
  /** Calls that whoever asked must answer himself. */
  readonly calls: readonly ModelCall[];
  /** What the turn was told at its beginning. */
  readonly context?: StoredContext;
  /** What it carries. */
  readonly labels?: ReadonlySet<Label>;
}

interface CommitParts extends TaskParts, ReplyParts {
  readonly reached: ReachedPoint;
  readonly journal: TurnJournal;
}

/**
 * The turn's one moment: its work is done, what was said is kept, the reply waits to be delivered. Refused to a stale owner, with all of it.
 * Where a task has not got the answer it asked for, the turn goes on instead: answers from where.
 */
export async function commitTurn(
  parts: CommitParts,
  claim: Claim,
  run: RunInput,
  outcome: TurnOutcome,
  causedBy: number,
): Promise<WentBack | null> {
  const { store, reached, journal } = parts;
  const { text, last, steps } = outcome;
  const usage = usageOf(steps, last?.response);
  const place = run.task === null && parts.delivers(run.address) ? (parts.keepDelivery?.(deliveryTenant(run.address)) ?? null) : null;
  const commit = store.transact(
    "commit turn",
    async (tx): Promise<{ readonly back: WentBack | null; readonly delivery?: ClaimedWork | null }> => {
      journal.refuseGaps();
      const task = run.task === null ? undefined : await readTask(tx, run.task);
      // The work row first, as whoever stops the turn does it: it stays while the turn may still go on.
      if (task && mayGoOn(task)) await store.queue.progressed(tx, claim);
      else await store.queue.settle(tx, claim);
      const { labels = new Set() } = outcome;
      const judged = task && (await judgeAnswerIn(parts, tx, { run, task, text, steps, labels }));
      if (judged?.kind === "goes on") {
        return { back: await sendBackIn(store, tx, { run, journal, steps, last }, judged, causedBy) };
      }
      if (task && mayGoOn(task)) await store.queue.settle(tx, claim);
      const cause = last ? await journal.responseIn(tx, last.step, last.response) : causedBy;
      await completeRun(tx, run.id, text, usage, outcome.calls);
      // A conversation that came with the message is whoever's who sent it.
      if (!isByItself(run)) await appendTranscript(tx, store.search, run, run.id, saidIn(run, steps, text));
      await keepSummaryOfTurn(tx, run, steps, outcome.context);
      await ackMailOfTurn(store, tx, run, outcome.context, steps);
      const [completed] = await store.ledger.append(tx, {
        type: "turn.completed",
        actor: run.agent,
        subject: ["run", run.id],
        causedBy: cause,
        data: { usage, characters: text.length },
      });
      await completeMerged(store, tx, run, outcome, completed as number);
      const reply = { runId: run.id, address: run.address, text, answers: run.origin?.messageId ?? null };
      const delivery = judged ? null : await sendReplyTakenIn(parts, tx, reply, completed as number, place);
      if (judged) await endTaskRunIn(parts, tx, run, { ...judged.end, causedBy: completed as number }, judged.end.going && task);
      if (last) await journal.usageIn(tx, last.step, last.response);
      return { back: null, delivery };
    },
    "locked",
  );
  try {
    const { back, delivery } = await commit;
    reached(back ? "turn.steered" : "turn.committed");
    if (run.task !== null && !back) for (const point of ["step.settled", "task.closed"] as const) reached(point);
    if (delivery) place?.begin(delivery);
    return back;
  } finally {
    place?.giveUp();
  }
}

/** One answer for all messages that the turn has taken in; it is delivered once, and counted once. */
async function completeMerged(store: Store, tx: Tx, run: RunInput, { text, steps }: TurnOutcome, causedBy: number): Promise<void> {
  if (!steps.some(({ kind }) => kind === "steered")) return;
  for (const { id } of await mergedRuns(tx, run.id)) {
    await completeRun(tx, id, text, null);
    const data = { usage: null, characters: text.length, mergedInto: run.id };
    await store.ledger.append(tx, { type: "turn.completed", actor: run.agent, subject: ["run", id], causedBy, data });
  }
}

/** The message, what was said while the turn went on, and the reply. */
function saidIn(run: RunInput, steps: readonly Step[], text: string): (Said & { readonly run?: string })[] {
  const between = steps.flatMap((step) => (step.kind === "steered" ? step.said : []));
  return [
    { role: "user", text: run.input },
    ...between.flatMap((said) => (said.run === null ? [] : [{ role: "user" as const, text: said.text, run: said.run }])),
    { role: "assistant", text },
  ];
}

/** Of all answers together, summaries included; null: no model has counted. */
function usageOf(steps: readonly Step[], last: Response | undefined): ModelUsage | null {
  const counted = [...steps.map(usageIn), last?.usage ?? null].filter((usage) => usage !== null);
  if (counted.length === 0) return null;
  const sum = (each: (usage: ModelUsage) => number): number => counted.reduce((total, usage) => total + each(usage), 0);
  const cachedInputTokens = sum((usage) => usage.cachedInputTokens ?? 0);
  return {
    inputTokens: sum((usage) => usage.inputTokens),
    outputTokens: sum((usage) => usage.outputTokens),
    ...(cachedInputTokens > 0 ? { cachedInputTokens } : {}),
  };
}

function usageIn(step: Step): ModelUsage | null {
  if (step.kind === "response") return step.response.usage;
  return step.kind === "compacted" ? (step.compaction.by?.usage ?? null) : null;
}
