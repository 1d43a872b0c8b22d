import type { Chat, Message, Update } from "grammy/types";
import type { ChatMessage, ChatPlace } from "../../../kernel/channel.ts";
import { messageOf } from "../../../kernel/failure.ts";
import type { Log } from "../../../kernel/log.ts";
import { filesOf } from "./message-files.ts";
import { callsUs, commandedBot, type Me, type Written, withoutCall } from "./read-entities.ts";

/** Where a forum's messages are that belong to none of its topics. Telegram names it so in links, and nowhere else. */
export const GENERAL_TOPIC = "1";

/**
 * What is said in a batch of updates. The pictures of an album come as messages of their own, of which one has the words: those that came
 * together are one. What was edited is not read again: it was answered as it was.
 */
export function readUpdates(updates: readonly Update[], me: Me, log: Log): ChatMessage[] {
  const read: ChatMessage[] = [];
  const albums = new Map<string, number>();
  for (const update of updates) {
    const message = update.message ?? update.channel_post;
    const heard = message && readSafely(update.update_id, message, me, log);
    if (!heard) continue;
    const album = message.media_group_id;
    const known = album === undefined ? undefined : albums.get(album);
    if (known !== undefined) {
      read[known] = together(read[known] as ChatMessage, heard);
      continue;
    }
    if (album !== undefined) albums.set(album, read.length);
    read.push(heard);
  }
  return read;
}

/** One that is not as we know messages must not keep those after it from coming. */
function readSafely(updateId: number, message: Message, me: Me, log: Log): ChatMessage | undefined {
  try {
    return readMessage(updateId, message, me);
  } catch (error) {
    log.warn("a message of Telegram cannot be read", { update: updateId, error: messageOf(error) });
    return undefined;
  }
}

function together(first: ChatMessage, next: ChatMessage): ChatMessage {
  return {
    ...first,
    text: first.text || next.text,
    isForUs: first.isForUs || next.isForUs,
    files: [...(first.files ?? []), ...(next.files ?? [])],
  };
}

function readMessage(updateId: number, message: Message, me: Me): ChatMessage | undefined {
  const { chat, from, sender_chat: behalf } = message;
  // Who speaks for a group or a channel is that chat; Telegram puts a bot of its own in the place of the person.
  const speaker = behalf ?? from;
  if (!speaker || (!behalf && from?.is_bot)) return undefined;
  const written = writtenIn(message);
  const answered = answeredBy(message);
  const files = [...filesOf(message), ...(answered && answered.from?.id !== me.id ? filesOf(answered) : [])];
  if (written.text === "" && files.length === 0) return undefined;
  const isPrivate = chat.type === "private";
  const bot = commandedBot(written);
  if (!isPrivate && bot && bot !== me.username.toLowerCase()) return undefined;
  const isForwarded = message.forward_origin !== undefined;
  const quoted = quotedIn(message, written, me);
  return {
    id: `${me.id}/${updateId}`,
    place: placeOf(message),
    sender: { id: String(speaker.id), name: nameOf(speaker) },
    text: isForwarded ? "" : withoutCall(written, me) || (files.length > 0 ? "" : written.text),
    isForUs: isPrivate || (!isForwarded && (callsUs(written, me) || answered?.from?.id === me.id)),
    messageId: String(message.message_id),
    ...(quoted ? { quoted } : {}),
    ...(files.length > 0 ? { files } : {}),
  };
}

function writtenIn({ text, entities, caption, caption_entities, location, venue }: Message): Written {
  if (text !== undefined) return { text, entities: entities ?? [] };
  if (caption !== undefined) return { text: caption, entities: caption_entities ?? [] };
  if (!location) return { text: "", entities: [] };
  const where = `${location.latitude}, ${location.longitude}`;
  return { text: venue ? `${venue.title}, ${venue.address} (${where})` : `Location: ${where}`, entities: [] };
}

/** In a topic, what answers nothing answers the message that has opened the topic. */
function answeredBy({ reply_to_message: answered }: Message): Message["reply_to_message"] {
  return answered?.forum_topic_created ? undefined : answered;
}

function quotedIn(message: Message, written: Written, me: Me): ChatMessage["quoted"] {
  const { forward_origin: origin, quote, external_reply: elsewhere } = message;
  if (origin) return { by: originOf(origin), text: written.text, isForwarded: true };
  const answered = answeredBy(message);
  // Our own words are no words of others.
  if (answered?.from?.id === me.id) return undefined;
  const text = quote?.text ?? answered?.text ?? answered?.caption ?? "";
  if (text === "") return undefined;
  const by = answered ? String((answered.sender_chat ?? answered.from)?.id ?? "") || null : elsewhere ? originOf(elsewhere.origin) : null;
  return { by, text, isForwarded: false };
}

function originOf(origin: NonNullable<Message["forward_origin"]>): string | null {
  if (origin.type === "user") return String(origin.sender_user.id);
  if (origin.type === "chat") return String(origin.sender_chat.id);
  if (origin.type === "channel") return String(origin.chat.id);
  return null;
}

function placeOf(message: Message): ChatPlace {
  const { chat } = message;
  const chatType = chat.type === "private" ? "dm" : chat.type === "channel" ? "channel" : "group";
  return { guild: null, chat: String(chat.id), topic: topicOf(message), chatType };
}

/** A thread of answers has such a number too, and is no topic. */
function topicOf({ chat, is_topic_message: isInTopic, message_thread_id: thread }: Message): string | null {
  if (isInTopic && thread !== undefined) return String(thread);
  return chat.type === "supergroup" && chat.is_forum ? GENERAL_TOPIC : null;
}

function nameOf(speaker: Chat | NonNullable<Message["from"]>): string | null {
  if ("title" in speaker && speaker.title !== undefined) return speaker.title;
  return [speaker.first_name, speaker.last_name].filter((name) => name !== undefined).join(" ") || null;
}
