import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { NewId } from "../kernel/ids.ts";
import type { ModelCall, ModelUsage, Said } from "../kernel/model.ts";
import type { Response, Step } from "../records/journal/steps.ts";
import { addReply } from "../records/sessions/outbox.ts";
import { completeRun, type RunInput } from "../records/sessions/runs.ts";
import { appendTranscript } from "../records/sessions/transcript.ts";
import type { Store } from "../store/store.ts";
import type { Claim } from "../store/work-queue.ts";
import type { TurnJournal } from "./turn-journal.ts";
import { DELIVERY_WORK, type DeliveryPayload } from "./work-kinds.ts";

export interface TurnOutcome {
  readonly text: string;
  readonly steps: readonly Step[];
  /** The answer that ends it, not recorded yet. */
  readonly last: { readonly step: number; readonly response: Response } | null;
  /** Calls that whoever asked must answer himself. */
  readonly calls: readonly ModelCall[];
}

interface CommitParts {
  readonly store: Store;
  readonly newId: NewId;
  readonly reached: ReachedPoint;
  readonly journal: TurnJournal;
}

/** The turn's one moment: its work is done, what was said is kept, the reply waits to be delivered. Refused to a stale owner, with all of it. */
export async function commitTurn(
  { store, newId, reached, journal }: CommitParts,
  claim: Claim,
  run: RunInput,
  outcome: TurnOutcome,
  causedBy: number,
): Promise<void> {
  const replyId = newId();
  const { text, last, steps } = outcome;
  const usage = usageOf(steps, last?.response);
  await store.transact(
    "commit turn",
    async (tx) => {
      await store.queue.settle(tx, claim);
      const cause = last ? await journal.responseIn(tx, last.step, last.response) : causedBy;
      await completeRun(tx, run.id, text, usage, outcome.calls);
      // A conversation that came with the message is whoever's who sent it.
      if (!run.request?.messages) await appendTranscript(tx, store.search, run, run.id, saidIn(run, steps, text));
      await addReply(tx, { id: replyId, runId: run.id, address: run.address, text });
      const [completed] = await store.ledger.append(tx, {
        type: "turn.completed",
        actor: run.agent,
        subject: ["run", run.id],
        causedBy: cause,
        data: { usage, characters: text.length },
      });
      const payload: DeliveryPayload = { replyId, runId: run.id, causedBy: completed as number };
      await store.queue.enqueue(tx, { kind: DELIVERY_WORK, payload, lane: ["delivery", run.sessionKey] });
    },
    "locked",
  );
  reached("turn.committed");
}

/** The message, what was said while the turn went on, and the reply. */
function saidIn(run: RunInput, steps: readonly Step[], text: string): Said[] {
  const between = steps.flatMap((step) => (step.kind === "steered" ? step.said.filter((said) => said.run !== null) : []));
  return [
    { role: "user", text: run.input },
    ...between.map((said): Said => ({ role: "user", text: said.text })),
    { role: "assistant", text },
  ];
}

/** Of all answers together; null: no model has counted. */
function usageOf(steps: readonly Step[], last: Response | undefined): ModelUsage | null {
  const responses = [...steps.flatMap((step) => (step.kind === "response" ? [step.response] : [])), ...(last ? [last] : [])];
  const counted = responses.flatMap(({ usage }) => (usage ? [usage] : []));
  if (counted.length === 0) return null;
  const sum = (each: (usage: ModelUsage) => number): number => counted.reduce((total, usage) => total + each(usage), 0);
  const cachedInputTokens = sum((usage) => usage.cachedInputTokens ?? 0);
  return {
    inputTokens: sum((usage) => usage.inputTokens),
    outputTokens: sum((usage) => usage.outputTokens),
    ...(cachedInputTokens > 0 ? { cachedInputTokens } : {}),
  };
}
