import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { NewId } from "../kernel/ids.ts";
import type { ModelCall, ModelUsage } from "../kernel/model.ts";
import { addReply } from "../records/sessions/outbox.ts";
import { completeRun, type RunInput } from "../records/sessions/runs.ts";
import { appendTranscript } from "../records/sessions/transcript.ts";
import type { Store } from "../store/store.ts";
import type { Claim } from "../store/work-queue.ts";
import { DELIVERY_WORK, type DeliveryPayload } from "./work-kinds.ts";

export interface TurnOutcome {
  readonly text: string;
  readonly usage: ModelUsage | null;
  /** Of tools that whoever asked answers himself. */
  readonly calls?: readonly ModelCall[];
}

/** The turn's one moment: its work is done, what was said is kept, the reply waits to be delivered. Refused to a stale owner, with all of it. */
export async function commitTurn(
  store: Store,
  newId: NewId,
  reached: ReachedPoint,
  claim: Claim,
  run: RunInput,
  outcome: TurnOutcome,
  causedBy: number,
): Promise<void> {
  const replyId = newId();
  await store.transact(
    "commit turn",
    async (tx) => {
      await store.queue.settle(tx, claim);
      await completeRun(tx, run.id, outcome.text, outcome.usage, outcome.calls);
      if (!run.request?.messages)
        await appendTranscript(tx, store.search, run, run.id, [
          { role: "user", text: run.input },
          { role: "assistant", text: outcome.text },
        ]);
      await addReply(tx, { id: replyId, runId: run.id, address: run.address, text: outcome.text });
      const [completed] = await store.ledger.append(tx, {
        type: "turn.completed",
        actor: run.agent,
        subject: ["run", run.id],
        causedBy,
        data: { usage: outcome.usage, characters: outcome.text.length },
      });
      const payload: DeliveryPayload = { replyId, runId: run.id, causedBy: completed as number };
      await store.queue.enqueue(tx, { kind: DELIVERY_WORK, payload, lane: ["delivery", run.sessionKey] });
    },
    "locked",
  );
  reached("turn.committed");
}
