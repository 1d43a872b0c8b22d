import { type APIMessage, type GatewayMessageCreateDispatchData, MessageReferenceType, MessageType } from "@discordjs/core/http-only";
import type { ChatMessage } from "../../../kernel/channel.ts";
import { filesOf } from "./attachments.ts";
import type { Places } from "./places.ts";

/** Everything else is the platform's own words: somebody has joined, a thread was made. */
const WORDS: ReadonlySet<MessageType> = new Set([MessageType.Default, MessageType.Reply]);
/** A tree of roles is a tree of rights: of somebody with more than these, the first ones count. */
const MAX_ROLES = 100;

/** Undefined: it was not said by a person, or where it was said is gone. */
export async function readMessage(
  message: GatewayMessageCreateDispatchData,
  botId: string,
  places: Places,
): Promise<ChatMessage | undefined> {
  const { author, member, guild_id: guildId } = message;
  if (author.bot || author.id === botId || message.webhook_id !== undefined || !WORDS.has(message.type)) return undefined;
  const place = await places.placeOf({ channelId: message.channel_id, guildId, channelType: message.channel_type });
  if (!place) return undefined;
  // Roles are only looked up where somebody has called one.
  const ownRoles =
    guildId !== undefined && message.mention_roles.length > 0
      ? (await places.ownRolesIn(guildId, botId)).filter((role) => message.mention_roles.includes(role))
      : [];
  const answered = answeredBy(message);
  const calls = callsOf(message.content, botId, ownRoles);
  const quoted = quotedBy(message, answered, botId);
  const files = filesOf(message);
  return {
    id: message.id,
    place,
    sender: {
      id: author.id,
      name: member?.nick ?? author.global_name ?? author.username,
      roles: (member?.roles ?? []).slice(0, MAX_ROLES),
    },
    // Who only calls has said so much; who only passes something on has said nothing, and a message must have some words.
    text: withoutCalls(message.content, calls) || (files.length > 0 || quoted ? " " : message.content),
    isForUs:
      place.chatType === "dm" ||
      calls.length > 0 ||
      ownRoles.length > 0 ||
      message.mentions.some(({ id }) => id === botId) ||
      answered?.author.id === botId,
    messageId: message.id,
    ...(quoted ? { quoted } : {}),
    ...(files.length > 0 ? { files } : {}),
  };
}

function answeredBy({ message_reference: reference, referenced_message: answered }: APIMessage): APIMessage | undefined {
  return reference?.type === MessageReferenceType.Forward ? undefined : (answered ?? undefined);
}

function quotedBy(message: APIMessage, answered: APIMessage | undefined, botId: string): ChatMessage["quoted"] {
  const [forwarded] = message.message_snapshots ?? [];
  if (forwarded) return { by: null, text: forwarded.message.content, isForwarded: true };
  // What we have said ourselves is in the conversation already.
  if (!answered || answered.author.id === botId) return undefined;
  return { by: answered.author.username, text: answered.content, isForwarded: false };
}

function callsOf(content: string, botId: string, ownRoles: readonly string[]): string[] {
  const all = [`<@${botId}>`, `<@!${botId}>`, ...ownRoles.map((role) => `<@&${role}>`)];
  return all.filter((call) => content.includes(call));
}

/** At the beginning and at the end a call only calls; in the middle of a sentence it is a word of it. */
function withoutCalls(content: string, calls: readonly string[]): string {
  let text = content.trim();
  for (let before = ""; before !== text; ) {
    before = text;
    for (const call of calls) {
      if (text.startsWith(call)) text = text.slice(call.length).replace(/^[\s,:]+/, "");
      if (text.endsWith(call)) text = text.slice(0, -call.length).trimEnd();
    }
  }
  return text;
}
