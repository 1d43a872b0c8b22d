import type { ReplyParts } from "../../acts/send-reply.ts";
import { turnAwayIn } from "../../acts/turn-away.ts";
import type { ChannelAccount } from "../../contract/channels.ts";
import { type InboundMessage, inboundMessage } from "../../contract/wire.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { ChatMessage } from "../../kernel/channel.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { isFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { Random } from "../../kernel/random.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import { pairedAmong } from "../../records/channels/pairings.ts";
import type { Tx } from "../../store/engine.ts";
import type { Intake, Stored, Taken } from "./accept.ts";
import { gate, isOnList } from "./gate.ts";
import { originOf, wordsOf } from "./origin.ts";

export interface ReceiveParts extends ReplyParts {
  readonly agents: Pick<AgentRegistry, "current">;
  readonly intake: Pick<Intake, "take" | "stored">;
  readonly random: Random;
  readonly log: Log;
  readonly reached: ReachedPoint;
  /** Takes secrets out of what somebody has written. */
  redact<T>(value: T): T;
}

/** What a channel has heard. `alongside`: what must be committed with it. Resolves when all of it is; the same again does no harm. */
export type Receive = (account: ChannelAccount, messages: readonly ChatMessage[], alongside: (tx: Tx) => Promise<void>) => Promise<void>;

/** Decides which messages come in, and stores them together. Where one of them cannot be, they are stored one by one. */
export function receiver(parts: ReceiveParts): Receive {
  const { store, intake } = parts;
  const commit = async (taken: readonly Taken[], alongside: (tx: Tx) => Promise<void>): Promise<void> => {
    const outcomes = await store.transact(
      taken.length === 1 ? (taken[0] as Taken).label : "admit messages",
      async (tx) => {
        await alongside(tx);
        const stored: Stored[] = [];
        for (const one of taken) stored.push(await one.inTx(tx));
        return stored;
      },
      "locked",
    );
    for (const outcome of outcomes) intake.stored(outcome);
  };
  return async (account, messages, alongside) => {
    parts.reached("message.received");
    const taken = await sorted(parts, account, messages);
    try {
      return await commit(taken, alongside);
    } catch (error) {
      if (taken.length < 2 || (isFailure(error) && /^(store|fence)\./.test(error.code))) throw error;
    }
    for (const one of taken) await commit([one], async () => {});
    await commit([], alongside);
  };
}

async function sorted(parts: ReceiveParts, account: ChannelAccount, messages: readonly ChatMessage[]): Promise<Taken[]> {
  const { owners } = parts.agents.current.settings.config;
  const unknown = new Set(messages.map(({ sender }) => sender.id).filter((peer) => !isOnList(account, peer, owners)));
  const paired = await pairedAmong(parts.store.read, account, [...unknown]);
  const facts = { owners, isPaired: (peer: string) => paired.has(peer) };
  return messages.flatMap((message) => {
    const how = gate(account, message, facts);
    if (how === "not ours") return [];
    const inbound = inboundOf(account, parts.redact(message));
    if (!inbound.success) {
      parts.log.warn("a message cannot be taken", {
        platform: account.platform,
        id: message.id.slice(0, 100),
        problem: inbound.error.message,
      });
      return [];
    }
    return [how === "stranger" ? turnedAway(parts, inbound.data, message) : letIn(parts, inbound.data, parts.redact(message))];
  });
}

function letIn({ intake }: ReceiveParts, inbound: InboundMessage, message: ChatMessage): Taken {
  const origin = originOf(message);
  return intake.take(inbound, { origin, words: wordsOf(inbound.platform, message, origin) });
}

function turnedAway(parts: ReceiveParts, inbound: InboundMessage, { messageId, place }: ChatMessage): Taken {
  const { platform, account, peer, roles, id: externalId, text } = inbound;
  const address: Address = { platform, account, peer, roles, ...place };
  const message = { runId: parts.newId(), externalId, messageId, address, text };
  return {
    label: "turn away",
    inTx: async (tx) => {
      await turnAwayIn(parts, tx, message);
      return { admission: null, stopped: [], point: null };
    },
  };
}

function inboundOf(
  { platform, account }: ChannelAccount,
  { id, place, sender, text, files }: ChatMessage,
): ReturnType<typeof inboundMessage.safeParse> {
  return inboundMessage.safeParse({
    id,
    platform,
    account,
    ...(place.guild === null ? {} : { guild: place.guild }),
    chat: place.chat,
    topic: place.topic,
    chat_type: place.chatType,
    peer: sender.id,
    roles: [...(sender.roles ?? [])],
    // What is only sent along has no words; a message must have some.
    text: text.replaceAll("\0", "").toWellFormed() || (files?.length ? " " : ""),
  });
}
