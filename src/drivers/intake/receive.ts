import type { ReplyParts } from "../../acts/send-reply.ts";
import { turnAwayIn } from "../../acts/turn-away.ts";
import type { ChannelAccount } from "../../contract/channels.ts";
import { type InboundMessage, inboundMessage } from "../../contract/wire.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { ChatMessage } from "../../kernel/channel.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { asFailure, isFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { Random } from "../../kernel/random.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import { keepOwnerChat } from "../../records/channels/owner-chats.ts";
import { pairedAmong } from "../../records/channels/pairings.ts";
import type { Tx } from "../../store/engine.ts";
import type { Intake, Stored, Taken } from "./accept.ts";
import { gate, isOnList } from "./gate.ts";
import { originOf, wordsOf } from "./origin.ts";

/** Of what somebody else has chosen, as much as a record needs. */
const SHOWN_CHARACTERS = 200;

export interface ReceiveParts extends ReplyParts {
  readonly agents: Pick<AgentRegistry, "current">;
  readonly intake: Pick<Intake, "take" | "placeFor" | "stored">;
  readonly random: Random;
  readonly log: Log;
  readonly reached: ReachedPoint;
  /** Takes secrets out of what somebody has written. */
  redact<T>(value: T): T;
}

/**
 * What must be committed with it. `isAll`: everything is stored now; before, only what every commit needs counts.
 */
export type Alongside = (tx: Tx, isAll: boolean) => Promise<void>;

/** What a channel has heard. Resolves when all of it is committed; the same again does no harm. */
export type Receive = (account: ChannelAccount, messages: readonly ChatMessage[], alongside: Alongside) => Promise<void>;

/**
 * Decides which messages come in, and stores them together. Where one of them cannot be, they are stored one by one, and those that cannot
 * even be so are recorded as refused: else the platform would bring them again and again, and nothing after them.
 */
export function receiver(parts: ReceiveParts): Receive {
  const { store, intake, log } = parts;
  const commit = async (taken: readonly Taken[], alongside: (tx: Tx) => Promise<void>): Promise<void> => {
    const places = taken.map((one) => intake.placeFor(one));
    try {
      const outcomes = await store.transact(
        taken.length === 1 ? (taken[0] as Taken).label : "admit messages",
        async (tx) => {
          await alongside(tx);
          const stored: Stored[] = [];
          for (const [index, one] of taken.entries()) stored.push(await one.inTx(tx, places[index]));
          return stored;
        },
        "locked",
      );
      for (const [index, outcome] of outcomes.entries()) intake.stored(outcome, places[index]);
    } finally {
      for (const place of places) place?.giveUp();
    }
  };
  return async (account, messages, alongside) => {
    parts.reached("message.received");
    const heard = await sorted(parts, account, messages);
    try {
      return await commit(
        heard.map(({ taken }) => taken),
        (tx) => alongside(tx, true),
      );
    } catch (error) {
      if (mayPass(error) || heard.length === 0) throw error;
    }
    for (const { taken, message } of heard)
      await commit([taken], (tx) => alongside(tx, false)).catch((error: unknown) => {
        if (mayPass(error)) throw error;
        const { code, message: problem } = asFailure(error);
        log.error("a message cannot be stored", { platform: account.platform, account: account.account, code, problem });
        return commit([refused(parts, account, message, code, problem)], (tx) => alongside(tx, false));
      });
    await commit([], (tx) => alongside(tx, true));
  };
}

/** It has nothing to do with the message. */
function mayPass(error: unknown): boolean {
  return isFailure(error) && (/^(store|fence)\./.test(error.code) || error.entry.retry !== "never");
}

interface Heard {
  readonly message: ChatMessage;
  readonly taken: Taken;
}

/** Nobody answers it, and the books say why. */
function refused(
  { store }: ReceiveParts,
  { platform, account }: ChannelAccount,
  message: ChatMessage,
  code: string,
  problem: string,
): Taken {
  const shown = (text: string): string => text.slice(0, SHOWN_CHARACTERS).replaceAll("\0", "").toWellFormed();
  return {
    label: "refuse message",
    inTx: async (tx) => {
      const actor = `${platform}:${shown(message.sender.id)}`;
      const data = { id: shown(message.id), code, message: shown(problem) };
      await store.ledger.append(tx, { type: "message.refused", actor, subject: ["channel", platform, account], data });
      return { admission: null, stopped: [], point: null };
    },
  };
}

async function sorted(parts: ReceiveParts, account: ChannelAccount, messages: readonly ChatMessage[]): Promise<Heard[]> {
  const { owners } = parts.agents.current.settings.config;
  const unknown = new Set(messages.map(({ sender }) => sender.id).filter((peer) => !isOnList(account, peer, owners)));
  const paired = await pairedAmong(parts.store.read, account, [...unknown]);
  const facts = { owners, isPaired: (peer: string) => paired.has(peer) };
  return messages.flatMap((message) => {
    const how = gate(account, message, facts);
    if (how === "not ours") return [];
    const clean = parts.redact(message);
    const inbound = inboundOf(account, clean);
    const taken = (): Taken => {
      if (!inbound.success) return refused(parts, account, clean, "request.malformed", problemOf(inbound.error));
      return how === "stranger" ? turnedAway(parts, inbound.data, message) : letIn(parts, inbound.data, clean);
    };
    // Of strangers there may be any number, and they may say anything.
    return inbound.success || how === "let in" ? [{ message: clean, taken: taken() }] : [];
  });
}

function problemOf({
  issues,
}: {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
}): string {
  return issues.map(({ path, message }) => `${path.map(String).join(".")}: ${message}`).join("; ");
}

function letIn({ intake, agents }: ReceiveParts, inbound: InboundMessage, message: ChatMessage): Taken {
  const origin = originOf(inbound, message);
  const taken = intake.take(inbound, { origin, words: wordsOf(inbound.platform, message, origin) });
  const { platform, account, peer, roles } = inbound;
  const isOwner = agents.current.settings.config.owners.includes(`${platform}:${peer}`);
  if (!isOwner || message.place.chatType !== "dm") return taken;
  return {
    ...taken,
    inTx: async (tx, by) => {
      await keepOwnerChat(tx, { platform, account, peer, roles, ...message.place });
      return taken.inTx(tx, by);
    },
  };
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
  { id, place, sender, text, files, quoted }: ChatMessage,
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
    // What is only sent along or passed on has no words of its own; a message must have some.
    text: text.replaceAll("\0", "").toWellFormed() || (files?.length || quoted ? " " : ""),
  });
}
