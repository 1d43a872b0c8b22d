import { settleReply } from "../records/sessions/outbox.ts";
import type { Store } from "../store/store.ts";
import type { Claim, DeadWork } from "../store/work-queue.ts";
import type { DeliveryPayload } from "./work-kinds.ts";

/** The reply is where its reader finds it. `via`: how it got there. */
export async function markSent(store: Store, claim: Claim, payload: DeliveryPayload, via: string): Promise<void> {
  await store.transact(
    "mark sent",
    async (tx) => {
      await store.queue.settle(tx, claim);
      if (!(await settleReply(tx, payload.replyId, "sent"))) return;
      const subject = ["run", payload.runId];
      const data = { reply: payload.replyId, via };
      await store.ledger.append(tx, { type: "reply.sent", actor: "guildhall", subject, causedBy: payload.causedBy, data });
    },
    "locked",
  );
}

/** Every attempt to deliver ended without an answer: nobody knows whether the reply arrived. */
export async function abandonDelivery(store: Store, dead: DeadWork): Promise<void> {
  const payload = dead.payload as DeliveryPayload;
  await store.transact(
    "abandon delivery",
    async (tx) => {
      if (!(await store.queue.cancel(tx, dead.id)) || !(await settleReply(tx, payload.replyId, "unknown"))) return;
      const subject = ["run", payload.runId];
      const data = { reply: payload.replyId, error: dead.error };
      await store.ledger.append(tx, { type: "reply.abandoned", actor: "guildhall", subject, causedBy: payload.causedBy, data });
    },
    "locked",
  );
}
