import type { Address } from "../deciders/routing/address.ts";
import type { NewId } from "../kernel/ids.ts";
import { addReply } from "../records/sessions/outbox.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { DELIVERY_WORK, type DeliveryPayload } from "./work-kinds.ts";

/** Whether a channel of ours brings replies to this address. Elsewhere they are collected: a committed reply has arrived. */
export type Delivers = (address: Address) => boolean;

export interface ReplyParts {
  readonly store: Store;
  readonly newId: NewId;
  readonly delivers: Delivers;
}

export interface ReplyToSend {
  readonly runId: string;
  readonly sessionKey: string;
  readonly address: Address;
  readonly text: string;
}

/** The reply waits to be delivered, in the order of its conversation. */
export async function sendReplyIn({ store, newId, delivers }: ReplyParts, tx: Tx, reply: ReplyToSend, causedBy: number): Promise<void> {
  const { runId, sessionKey, address, text } = reply;
  if (!delivers(address)) return;
  const replyId = newId();
  await addReply(tx, { id: replyId, runId, address, text });
  const payload: DeliveryPayload = { replyId, runId, causedBy };
  await store.queue.enqueue(tx, { kind: DELIVERY_WORK, payload, lane: ["delivery", sessionKey] });
}
