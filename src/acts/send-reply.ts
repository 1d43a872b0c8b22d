import type { Address } from "../deciders/routing/address.ts";
import type { NewId } from "../kernel/ids.ts";
import type { Scope } from "../kernel/scope.ts";
import { accountKey, addReply, finishDraft, type ReplyFile } from "../records/sessions/outbox.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { ClaimedWork, Taker } from "../store/work-queue.ts";
import { DELIVERY_WORK, type DeliveryPayload, type KeptPlace } from "./work-kinds.ts";

/** Whether a channel of ours brings replies to this address. Elsewhere they are collected: a committed reply has arrived. */
export type Delivers = (address: Address) => boolean;

export interface ReplyParts {
  readonly store: Store;
  readonly newId: NewId;
  readonly delivers: Delivers;
  /** A free place of this node for a delivery of this account; null: there is none, or others wait for it. */
  readonly keepDelivery?: (tenant: string) => KeptPlace | null;
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
  parts: ReplyParts,
  tx: Tx,
  reply: ReplyToSend,
  causedBy: number,
  besides = false,
): Promise<string | undefined> {
  return (await sendIn(parts, tx, reply, causedBy, besides, null))?.replyId;
}

/** The same for what a turn says at its end. Answers the delivery where it is `by`'s already; null: whoever is next delivers it. */
export async function sendReplyTakenIn(
  parts: ReplyParts,
  tx: Tx,
  reply: ReplyToSend,
  causedBy: number,
  by: Taker | null,
): Promise<ClaimedWork | null> {
  return (await sendIn(parts, tx, reply, causedBy, false, by))?.taken ?? null;
}

async function sendIn(
  { store, newId, delivers }: ReplyParts,
  tx: Tx,
  reply: ReplyToSend,
  causedBy: number,
  besides: boolean,
  by: Taker | null,
): Promise<{ readonly replyId: string; readonly taken: ClaimedWork | null } | undefined> {
  const { runId, address, text } = reply;
  if (!delivers(address)) return undefined;
  let replyId = besides ? undefined : await finishDraft(tx, runId, text);
  if (replyId === undefined) {
    replyId = newId();
    // In private everybody sees what is answered.
    await addReply(tx, { ...reply, id: replyId, answers: address.chatType === "dm" ? null : reply.answers });
  }
  return { replyId, taken: await enqueueDelivery(store, tx, address, { replyId, runId, causedBy }, by) };
}

/** Answers the claim where it is `by`'s already. */
export async function enqueueDelivery(
  store: Store,
  tx: Tx,
  address: Address,
  payload: DeliveryPayload,
  by: Taker | null = null,
): Promise<ClaimedWork | null> {
  const lane = ["delivery", address.platform, address.account, address.chat, address.topic ?? ""];
  const work = { kind: DELIVERY_WORK, payload, lane, tenant: { name: deliveryTenant(address), weight: 1 } };
  if (by) return store.queue.enqueueTaken(tx, work, by);
  await store.queue.enqueue(tx, work);
  return null;
}

/** Accounts take turns. */
export function deliveryTenant(address: Pick<Address, "platform" | "account">): string {
  return `channel ${accountKey(address)}`;
}

/** Whose the files of a reply are until it is where its reader finds it. */
export function fileOwner(replyId: string): Scope {
  return ["reply", replyId];
}
