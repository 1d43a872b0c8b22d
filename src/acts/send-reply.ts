import type { Address } from "../deciders/routing/address.ts";
import type { NewId } from "../kernel/ids.ts";
import type { Scope } from "../kernel/scope.ts";
import { accountKey, addReply, finishDraft, type ReplyFile } from "../records/sessions/outbox.ts";
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
  readonly address: Address;
  readonly text: string;
  /** The platform's id of the message that it answers. */
  readonly answers: string | null;
  readonly files?: readonly ReplyFile[];
}

/**
 * The reply waits to be delivered, in the order of its chat. What the turn has shown while it ran becomes the reply; `besides`: it stays
 * what it is, and this is something else that is said. Answers its id; undefined: nobody delivers it.
 */
export async function sendReplyIn(
  { store, newId, delivers }: ReplyParts,
  tx: Tx,
  reply: ReplyToSend,
  causedBy: number,
  besides = false,
): Promise<string | undefined> {
  const { runId, address, text } = reply;
  if (!delivers(address)) return undefined;
  let replyId = besides ? undefined : await finishDraft(tx, runId, text);
  if (replyId === undefined) {
    replyId = newId();
    // In private everybody sees what is answered.
    await addReply(tx, { ...reply, id: replyId, answers: address.chatType === "dm" ? null : reply.answers });
  }
  await enqueueDelivery(store, tx, address, { replyId, runId, causedBy });
  return replyId;
}

export async function enqueueDelivery(store: Store, tx: Tx, address: Address, payload: DeliveryPayload): Promise<void> {
  const lane = ["delivery", address.platform, address.account, address.chat, address.topic ?? ""];
  await store.queue.enqueue(tx, { kind: DELIVERY_WORK, payload, lane, tenant: { name: `channel ${accountKey(address)}`, weight: 1 } });
}

/** Whose the files of a reply are until it is where its reader finds it. */
export function fileOwner(replyId: string): Scope {
  return ["reply", replyId];
}
