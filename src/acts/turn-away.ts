import type { Address } from "../deciders/routing/address.ts";
import type { Random } from "../kernel/random.ts";
import { knockIn } from "../records/channels/pairings.ts";
import { enterInbox } from "../records/sessions/inbox.ts";
import { addRun } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import { type ReplyParts, sendReplyIn } from "./send-reply.ts";

export interface StrangersMessage {
  readonly runId: string;
  readonly externalId: string;
  readonly messageId: string;
  readonly address: Address;
  readonly text: string;
}

/** As much of what a stranger says as an owner needs to know who it may be. */
const KEPT_CHARACTERS = 500;

/**
 * Somebody who is not on the list has written: the message is refused. In private they are told a code, once, with which an owner can let
 * them in; that message is kept, and of all that follow only how many they were.
 */
export async function turnAwayIn(parts: ReplyParts & { readonly random: Random }, tx: Tx, message: StrangersMessage): Promise<void> {
  const { store, random } = parts;
  const { address, runId, externalId } = message;
  const { platform, account, peer } = address;
  const knock = await knockIn(tx, address, peer, address.chatType === "dm", random);
  if (knock === null || (await enterInbox(tx, { platform, account, externalId }, runId)) !== runId) return;
  const because = `${platform}:${peer} is not on the list of the account ${platform}/${account}, and was not paired`;
  const refusal = { code: "sender.unknown", message: because };
  const decision = { agent: null, tier: "none" as const, binding: null, because, trace: [] };
  const input = message.text.slice(0, KEPT_CHARACTERS).toWellFormed();
  await addRun(tx, { id: runId, agent: null, sessionKey: null, address, input, decision, refusal });
  const subject = ["run", runId];
  const [refused] = await store.ledger.append(tx, {
    type: "sender.refused",
    actor: `${platform}:${peer}`,
    subject,
    data: { ...refusal, address },
  });
  const text = `I do not know you yet. Give this code to the owner of this bot: ${knock.code}\nIt is good for an hour. The owner lets you in with /pair ${knock.code}.`;
  await sendReplyIn(parts, tx, { runId, address, text, answers: message.messageId }, refused as number);
}
