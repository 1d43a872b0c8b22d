import { recordDraft } from "../../acts/draft-reply.ts";
import { endDelivery, keepDelivery, postponeDelivery, retryDelivery, tellUnclear } from "../../acts/settle-delivery.ts";
import type { DeliveryPayload } from "../../acts/work-kinds.ts";
import type { ChannelAccount } from "../../contract/channels.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { type Channel, type Outbound, type Part, SendTrouble } from "../../kernel/channel.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { messageOf } from "../../kernel/failure.ts";
import { firstOf } from "../../kernel/first-of.ts";
import type { Random } from "../../kernel/random.ts";
import { type ReplyFile, readReply, type StoredReply } from "../../records/sessions/outbox.ts";
import type { Store } from "../../store/store.ts";
import type { ClaimedWork } from "../../store/work-queue.ts";
import type { Handler } from "./dispatcher.ts";

/** How replies leave: by whom, and what is to be done where nobody knows whether one has. */
export interface Sender {
  readonly channel: Channel;
  readonly account: ChannelAccount;
  /** How long nothing of this account should be tried; 0: it may be. */
  pausedMs(): number;
  /** Nothing of this account leaves for so long. */
  pause(ms: number): void;
}

export interface DeliveryParts {
  readonly store: Store;
  readonly random: Random;
  readonly reached: ReachedPoint;
  /** Undefined: there is no such account any more. */
  senderOf(address: Address): Promise<Sender | undefined>;
}

const SEND_MS = 30_000;
const SEND_FILE_MS = 120_000;
/** A reply that nobody could be given for so long is given up. */
const GIVE_UP_MS = 24 * 60 * 60_000;
/** A part that was sent so often without anybody knowing is not sent again. */
const MAX_UNCLEAR = 3;
/** No platform knows for longer what it was sent. What is older than this may have been sent any time since. */
const REMEMBERED_MS = 2 * 60_000;
const NOTHING = "(nothing to say)";
const LATER_MS = 1_000;
const LATER_MAX_MS = 60_000;

/**
 * Brings one reply to its platform, part by part. That a part is on its way is committed before it leaves, and that it has arrived after
 * the platform has said so: whoever takes over knows which part nobody knows about, and sends it again where that does no harm or where
 * the operator wants it so.
 */
export function deliverReply(parts: DeliveryParts): Handler {
  const { store } = parts;
  return async (item, lost) => {
    const payload = item.payload as DeliveryPayload;
    const reply = await readReply(store.read, payload.replyId);
    // Restored from a backup, or settled by whoever had it before.
    if (reply?.state !== "pending") return endDelivery(store, item, payload, { state: "sent", ids: reply?.sent ?? [], problem: null });
    const sender = await parts
      .senderOf(reply.address)
      .catch((error: unknown) => new SendTrouble("later", messageOf(error), { cause: error }));
    // It has not even begun: whatever is wrong with the channel, the reply is as good as before.
    if (sender instanceof SendTrouble) return wait(parts, item, payload, reply, sender);
    if (!sender) {
      const problem = `the account ${reply.address.platform}/${reply.address.account} is not in the config any more`;
      return endDelivery(store, item, payload, { state: "refused", ids: reply.sent, problem });
    }
    const paused = sender.pausedMs();
    if (paused > 0) return postponeDelivery(store, item, reply, null, paused + LATER_MS * parts.random.fraction());
    await deliver(parts, sender, item, payload, reply, lost);
  };
}

async function deliver(
  parts: DeliveryParts,
  sender: Sender,
  item: ClaimedWork,
  payload: DeliveryPayload,
  reply: StoredReply,
  lost: AbortSignal,
): Promise<void> {
  const { store, reached } = parts;
  const { channel } = sender;
  const { delivery } = sender.account;
  const pieces = [...(reply.parts ?? piecesOf(channel, reply))];
  // What was shown while the turn ran does not stay on its own, whatever became of the turn.
  if (pieces.length === 0 && reply.draft !== null) pieces.push(...channel.partsOf(NOTHING));
  const files = channel.abilities.sendsFiles ? (reply.files ?? []) : [];
  const total = pieces.length + files.length;
  let { unclear, draft } = reply;
  const sent = [...reply.sent];
  let isEdit = false;
  let isGone = false;
  let isAgain = reply.intended === 0 && reply.draft === null && channel.abilities.dedupes && channel.edit !== undefined;
  if (reply.intended !== null && !(channel.abilities.dedupes && reply.ageMs <= REMEMBERED_MS)) {
    unclear++;
    if (delivery === "at_most_once" || unclear > MAX_UNCLEAR) sent.push(null);
    await tellUnclear(store, item, payload, { parts: pieces, sent, intended: null, unclear, part: reply.intended, policy: delivery });
  }
  try {
    while (sent.length < total) {
      const index = sent.length;
      // What is edited may be edited again: nothing about it is ever unclear.
      isEdit = index === 0 && draft !== null && channel.edit !== undefined && pieces.length > 0;
      if (!isEdit) {
        await keepDelivery(store, item, reply.id, { parts: pieces, sent, intended: index, unclear });
        reached("reply.intended");
      }
      const message = await outboundOf(store, reply, pieces, files, index, isGone);
      const id = await withinTime(lost, message.file ? SEND_FILE_MS : SEND_MS, (signal) =>
        isEdit ? edited(channel, message, draft as string, signal) : sentBy(channel, message, signal),
      );
      // Somebody has removed it: what it showed is said anew.
      if (id === null) {
        [draft, isGone] = [null, true];
        continue;
      }
      // The platform may have answered with the draft that it was sent under this key: it is not the reply yet.
      if (isAgain && index === 0 && message.part) {
        await recordDraft(store, reply.id, id);
        [draft, isAgain] = [id, false];
        continue;
      }
      reached("reply.delivered");
      sent.push(id);
      unclear = 0;
    }
  } catch (error) {
    if (lost.aborted) return;
    return settleTrouble(parts, sender, item, payload, { ...reply, parts: pieces, sent, unclear }, troubleOf(error, isEdit));
  }
  const isKnown = !sent.includes(null);
  await endDelivery(store, item, payload, {
    state: isKnown ? "sent" : "unknown",
    ids: sent,
    problem: isKnown ? null : "a part may not have arrived",
  });
  reached("reply.recorded");
}

/** The words; and where no files can be sent, which there would have been. */
function piecesOf(channel: Channel, { text, files = [] }: StoredReply): Part[] {
  const names = channel.abilities.sendsFiles ? [] : files.map(({ name }) => `[a file that cannot be sent here: ${name}]`);
  return [text, ...names].flatMap((words) => (words === "" ? [] : channel.partsOf(words)));
}

async function outboundOf(
  store: Store,
  reply: StoredReply,
  pieces: readonly Part[],
  files: readonly ReplyFile[],
  index: number,
  isGone: boolean,
): Promise<Outbound> {
  const { guild, chat, topic, chatType } = reply.address;
  const common = {
    place: { guild, chat, topic, chatType },
    // By the key of a draft that was removed, a platform that knows keys would answer with what nobody sees any more.
    key: `${reply.id}:${index}${isGone && index === 0 ? ":anew" : ""}`,
    answers: index === 0 ? reply.answers : null,
  };
  const part = pieces[index];
  if (part) return { ...common, part };
  const file = files[index - pieces.length] as ReplyFile;
  const data = await store.blobs.get(file.blob);
  if (!data) throw new SendTrouble("refused", `the file ${file.name} is not there any more`);
  return { ...common, part: null, file: { name: file.name, mediaType: file.mediaType, data } };
}

async function sentBy(channel: Channel, message: Outbound, signal: AbortSignal): Promise<string> {
  return (await channel.send(message, signal)).id;
}

/** Null: there is no such message any more. */
async function edited(channel: Channel, message: Outbound, id: string, signal: AbortSignal): Promise<string | null> {
  try {
    await channel.edit?.(message, id, signal);
    return id;
  } catch (error) {
    if (error instanceof SendTrouble && error.kind === "refused" && !error.isWhole) return null;
    throw error;
  }
}

async function settleTrouble(
  parts: DeliveryParts,
  sender: Sender,
  item: ClaimedWork,
  payload: DeliveryPayload,
  reply: StoredReply,
  trouble: SendTrouble,
): Promise<void> {
  const { store } = parts;
  const { kind, isWhole, message: problem } = trouble;
  // Where it is the account that is refused, the reply is as good as before: the operator may help.
  if (kind === "refused" && !isWhole) return endDelivery(store, item, payload, { state: "refused", ids: reply.sent, problem });
  if (kind !== "unclear") return wait(parts, item, payload, reply, trouble, sender);
  if (reply.ageMs > GIVE_UP_MS)
    return endDelivery(store, item, payload, { state: "unknown", ids: reply.sent, problem: `not within a day: ${problem}` });
  // What is intended stays in the books: whoever takes it up next does with it what the policy says.
  await retryDelivery(store, item, problem, backoffOf(reply, parts.random));
}

async function wait(
  { store, random }: DeliveryParts,
  item: ClaimedWork,
  payload: DeliveryPayload,
  reply: StoredReply,
  trouble: SendTrouble,
  sender?: Sender,
): Promise<void> {
  if (reply.ageMs > GIVE_UP_MS)
    return endDelivery(store, item, payload, { state: "refused", ids: reply.sent, problem: `not within a day: ${trouble.message}` });
  const ms = trouble.afterMs ?? backoffOf(reply, random);
  if (trouble.isWhole) sender?.pause(ms);
  // What was on its way when a channel could not be opened may still have arrived.
  await postponeDelivery(store, item, reply, sender ? reply : null, ms);
}

/** The longer it has been waiting, the longer it can wait. */
function backoffOf({ ageMs }: StoredReply, random: Random): number {
  return Math.min(LATER_MAX_MS, Math.max(LATER_MS, ageMs / 2)) * (0.5 + random.fraction());
}

function troubleOf(error: unknown, isEdit: boolean): SendTrouble {
  const trouble = error instanceof SendTrouble ? error : new SendTrouble("unclear", messageOf(error), { cause: error });
  return isEdit && trouble.kind === "unclear" ? new SendTrouble("later", trouble.message, { cause: error }) : trouble;
}

/** A channel that does not listen to its signal is not waited for either: nobody knows what comes of it. */
async function withinTime<T>(lost: AbortSignal, ms: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = firstOf([lost], ms);
  const { promise: over, reject } = Promise.withResolvers<never>();
  ending.signal.addEventListener("abort", () => reject(ending.signal.reason), { once: true });
  try {
    return await Promise.race([run(ending.signal), over]);
  } finally {
    ending.over();
  }
}
