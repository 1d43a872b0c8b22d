import type { Part } from "../kernel/channel.ts";
import { keepProgress, type Progress, type ReplyEnding, readReply, type StoredReply, settleReply } from "../records/sessions/outbox.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { Claim, DeadWork } from "../store/work-queue.ts";
import { fileOwner } from "./send-reply.ts";
import type { DeliveryPayload } from "./work-kinds.ts";

/** Says what is on its way before it is, and what has arrived after it has. Refused to a stale owner. */
export async function keepDelivery(store: Store, claim: Claim, replyId: string, progress: Progress): Promise<void> {
  await store.transact(
    "keep delivery",
    async (tx) => {
      await store.queue.progressed(tx, claim);
      await keepProgress(tx, replyId, progress);
    },
    "locked",
  );
}

/** A part was on its way when its node died, or its answer was lost. From now on the books say so, whatever is done about it. */
export async function tellUnclear(
  store: Store,
  claim: Claim,
  { replyId, runId, causedBy }: DeliveryPayload,
  progress: Progress & { readonly part: number; readonly policy: string },
): Promise<void> {
  await store.transact(
    "tell unclear delivery",
    async (tx) => {
      await store.queue.progressed(tx, claim);
      await keepProgress(tx, replyId, progress);
      const data = { reply: replyId, part: progress.part, policy: progress.policy };
      await store.ledger.append(tx, { type: "reply.unclear", actor: "guildhall", subject: ["run", runId], causedBy, data });
    },
    "locked",
  );
}

/** It is where its reader finds it, or never will be. */
export async function endDelivery(store: Store, claim: Claim, payload: DeliveryPayload, end: ReplyEnding): Promise<void> {
  await store.transact(
    "end delivery",
    async (tx) => {
      await store.queue.settle(tx, claim);
      await endReplyIn(store, tx, payload, end);
    },
    "locked",
  );
}

/** The platform asks to wait, or cannot be reached: nothing of it is on its way. It does not count as an attempt. */
export async function postponeDelivery(
  store: Store,
  claim: Claim,
  reply: Pick<StoredReply, "id">,
  progress: (Omit<Progress, "intended" | "parts"> & { readonly parts: readonly Part[] | null }) | null,
  delayMs: number,
): Promise<void> {
  await store.transact(
    "postpone delivery",
    async (tx) => {
      await store.queue.park(tx, claim, delayMs);
      if (progress?.parts) await keepProgress(tx, reply.id, { ...progress, parts: progress.parts, intended: null });
    },
    "locked",
  );
}

/** Nobody knows whether it arrived; whoever takes it up next finds that out of the books. It counts as an attempt. */
export async function retryDelivery(store: Store, claim: Claim, problem: string, delayMs: number): Promise<void> {
  await store.transact("retry delivery", (tx) => store.queue.retry(tx, claim, problem, delayMs), "locked");
}

/** Every attempt to deliver ended without an answer: nobody knows whether the reply arrived. */
export async function abandonDelivery(store: Store, dead: DeadWork): Promise<void> {
  await store.transact(
    "abandon delivery",
    async (tx) => {
      if (!(await store.queue.cancel(tx, dead.id))) return;
      const payload = dead.payload as DeliveryPayload;
      const reply = await readReply(tx, payload.replyId);
      await endReplyIn(store, tx, payload, {
        state: "unknown",
        ids: reply?.sent ?? [],
        problem: dead.error ?? "no attempt was answered",
      });
    },
    "locked",
  );
}

async function endReplyIn(store: Store, tx: Tx, { replyId, runId, causedBy }: DeliveryPayload, ending: ReplyEnding): Promise<void> {
  if (!(await settleReply(tx, replyId, ending))) return;
  await store.blobs.release(tx, fileOwner(replyId));
  const { state, ids, problem } = ending;
  const data = { reply: replyId, ids, ...(problem === null ? {} : { problem }) };
  await store.ledger.append(tx, { type: ENDS[state], actor: "guildhall", subject: ["run", runId], causedBy, data });
}

const ENDS = { sent: "reply.sent", refused: "reply.refused", unknown: "reply.abandoned" } as const;
