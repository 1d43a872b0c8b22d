import { badRequest, Refusal, tooMany } from "./telegram-answer.ts";
import { type BotMessage, type Chats, type KnownChat, wireChat } from "./telegram-chats.ts";
import { readHtml } from "./telegram-html.ts";
import type { Call, SentFile } from "./telegram-request.ts";

const MAX_TEXT = 4_096;
const MAX_DOWNLOAD = 20 * 1_048_576;
const REACTIONS = new Set(
  [
    "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻",
    "👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡",
  ]
    .join(" ")
    .split(" "),
);

export interface Books {
  readonly me: { readonly id: number; readonly username: string };
  readonly chats: Chats;
  readonly accepted: BotMessage[];
  /** By file id. */
  readonly files: Map<string, Uint8Array>;
  /** The bot's marks, by chat and message. */
  readonly reactions: Map<string, string | null>;
  readonly typing: { readonly chat: string; readonly topic: string | null }[];
  /** Least time between two messages in one chat. */
  readonly perChatMs: number;
  /** Files do not say how large they are, as Telegram does not always. */
  hidesSizes: boolean;
  complain(problem: string): void;
}

export const SENDING = new Set(["sendMessage", "sendDocument", "sendPhoto", "sendVoice", "editMessageText"]);

/** What the Bot API does for a call. Throws a Refusal. */
export function answerCall(books: Books, call: Call): unknown {
  switch (call.method) {
    case "getMe":
      return { ...books.me, is_bot: true, first_name: "Guild", can_join_groups: true, can_read_all_group_messages: true };
    case "sendMessage":
      return sendText(books, call);
    case "sendDocument":
      return sendFile(books, call, "document");
    case "sendPhoto":
      return sendFile(books, call, "photo");
    case "sendVoice":
      return sendFile(books, call, "voice");
    case "editMessageText":
      return editText(books, call);
    case "sendChatAction":
      return chatAction(books, call);
    case "setMessageReaction":
      return setReaction(books, call);
    case "getFile":
      return getFile(books, call);
    default:
      throw new Refusal(404, "Not Found");
  }
}

function sendText(books: Books, call: Call): unknown {
  const text = textOf(books, call);
  return put(books, call, { text, raw: String(call.fields.text), file: null });
}

function sendFile(books: Books, call: Call, kind: string): unknown {
  const given = String(call.fields[kind] ?? "");
  const file = call.files.get(given.replace(/^attach:\/\//, ""));
  if (!given.startsWith("attach://") || !file) throw badRequest(`there is no ${kind} in the request`);
  if (file.data.byteLength === 0) throw badRequest("file must be non-empty");
  if (kind === "photo" && !isImage(file.data)) throw badRequest("IMAGE_PROCESS_FAILED");
  const caption = String(call.fields.caption ?? "");
  return put(books, call, { text: caption, raw: caption, file: { name: file.name, data: file.data } });
}

function put(books: Books, call: Call, content: { text: string; raw: string; file: SentFile | null }): unknown {
  const chat = chatOf(books, call);
  const thread = threadOf(chat, call);
  const answered = answeredOf(chat, call);
  const now = performance.now();
  if (now < chat.notBefore) {
    books.complain(`does not wait as it was told to in chat ${chat.id}`);
    throw tooMany(Math.ceil((chat.notBefore - now) / 1_000));
  }
  const wait = books.perChatMs - (now - chat.lastSentAt);
  if (wait > 0 && books.perChatMs > 0) {
    const seconds = Math.ceil(wait / 1_000);
    chat.notBefore = now + seconds * 1_000;
    throw tooMany(seconds);
  }
  chat.lastSentAt = now;
  const id = ++chat.lastId;
  const shown: BotMessage = {
    ...{ id: String(id), chat: String(chat.id), topic: thread === null ? null : String(thread), ...content },
    ...{ answers: answered, edits: 0 },
  };
  chat.ours.set(id, shown);
  books.accepted.push(shown);
  return wireMessage(books, chat, shown);
}

function editText(books: Books, call: Call): unknown {
  const chat = chatOf(books, call);
  const ours = chat.ours.get(Number(call.fields.message_id));
  if (!ours) {
    const isOthers = chat.messages.has(Number(call.fields.message_id));
    if (isOthers) books.complain("edits a message of somebody else");
    throw badRequest(isOthers ? "message can't be edited" : "message to edit not found");
  }
  const text = textOf(books, call);
  if (text === ours.text && String(call.fields.text) === ours.raw)
    throw badRequest(
      "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
    );
  ours.text = text;
  ours.raw = String(call.fields.text);
  ours.edits++;
  return wireMessage(books, chat, ours);
}

function textOf(books: Books, { fields }: Call): string {
  const { text, parse_mode: mode } = fields;
  if (typeof text !== "string") throw badRequest("message text is empty");
  if (mode !== undefined && mode !== "HTML") throw badRequest("unsupported parse_mode");
  let read: string;
  try {
    read = (mode === "HTML" ? readHtml(text) : text).trim();
  } catch (error) {
    throw badRequest((error as Error).message);
  }
  if (read === "") throw badRequest("message text is empty");
  if (read.length > MAX_TEXT) {
    books.complain(`a message of ${read.length} characters`);
    throw badRequest("message is too long");
  }
  return read;
}

function chatOf({ chats, complain }: Books, { fields }: Call): KnownChat {
  const chat = chats.get(fields.chat_id);
  if (!chat) {
    complain(`writes to a chat that it does not know: ${fields.chat_id}`);
    throw badRequest("chat not found");
  }
  if (chat.movedTo !== null) throw badRequest("group chat was upgraded to a supergroup chat", { migrate_to_chat_id: chat.movedTo });
  return chat;
}

function threadOf(chat: KnownChat, { fields }: Call): number | null {
  const thread = fields.message_thread_id;
  if (thread === undefined) return null;
  if (!chat.topics.has(thread)) throw badRequest("message thread not found");
  return thread;
}

function answeredOf(chat: KnownChat, { fields }: Call): string | null {
  const { message_id: id, allow_sending_without_reply: isOptional } = fields.reply_parameters ?? {};
  if (id === undefined) return null;
  if (chat.messages.has(id) || chat.ours.has(id)) return String(id);
  if (!isOptional) throw badRequest("message to be replied not found");
  return null;
}

function chatAction(books: Books, call: Call): true {
  const chat = chatOf(books, call);
  if (call.fields.action !== "typing") throw badRequest("wrong parameter action in request");
  // Of all calls, this one alone knows the general topic by its number.
  const thread = call.fields.message_thread_id === 1 && chat.topics.size > 0 ? 1 : threadOf(chat, call);
  books.typing.push({ chat: String(chat.id), topic: thread === null ? null : String(thread) });
  return true;
}

function setReaction(books: Books, call: Call): true {
  const chat = chatOf(books, call);
  const id = Number(call.fields.message_id);
  if (!chat.messages.has(id) && !chat.ours.has(id)) throw badRequest("message to react not found");
  const marks: readonly { type: string; emoji: string }[] = call.fields.reaction ?? [];
  if (marks.length > 1) throw badRequest("REACTIONS_TOO_MANY");
  const [mark] = marks;
  if (mark && (mark.type !== "emoji" || !REACTIONS.has(mark.emoji))) {
    books.complain(`a mark that there is not: ${mark.emoji}`);
    throw badRequest("REACTION_INVALID");
  }
  books.reactions.set(`${chat.id}/${id}`, mark?.emoji ?? null);
  return true;
}

function getFile({ files, hidesSizes }: Books, { fields }: Call): unknown {
  const data = files.get(String(fields.file_id));
  if (!data) throw badRequest("invalid file_id");
  if (data.byteLength > MAX_DOWNLOAD) throw badRequest("file is too big");
  const size = hidesSizes ? {} : { file_size: data.byteLength };
  return { file_id: fields.file_id, file_unique_id: `u${fields.file_id}`, ...size, file_path: `media/${fields.file_id}` };
}

function wireMessage({ me }: Books, chat: KnownChat, { id, topic, text, file }: BotMessage): unknown {
  return {
    message_id: Number(id),
    ...(topic === null ? {} : { message_thread_id: Number(topic), is_topic_message: true }),
    ...{ from: { ...me, is_bot: true, first_name: "Guild" }, chat: wireChat(chat), date: 1_800_000_000 },
    ...(file ? { document: { file_id: `sent-${id}`, file_unique_id: id, file_name: file.name } } : { text }),
  };
}

function isImage(data: Uint8Array): boolean {
  const hex = Buffer.from(data.subarray(0, 4)).toString("hex");
  return hex.startsWith("ffd8ff") || hex === "89504e47" || hex === "52494646";
}
