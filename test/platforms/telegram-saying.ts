import type { Saying } from "./stand-in.ts";
import { type KnownChat, wireChat } from "./telegram-chats.ts";
import type { Books } from "./telegram-methods.ts";

type Content = Readonly<Record<string, unknown>>;

/** A stranger, whose words are quoted and passed on. */
const SOMEBODY = { id: 990, is_bot: false, first_name: "Somebody" };

/** The messages in which Telegram brings what a person has sent: one, or one for each file. */
export function contentOf(books: Books, chat: KnownChat, text: string, how: Saying): Content[] {
  const { me } = books;
  const isForwarded = how.quotes?.forwarded === true;
  const called = how.mentions && !isForwarded ? call(text, me.username) : text;
  const common: Content = {
    ...(how.topic === undefined ? {} : { message_thread_id: Number(how.topic), is_topic_message: true }),
    ...(isForwarded ? { forward_origin: { type: "user", sender_user: SOMEBODY, date: 1_700_000_000 } } : answered(books, chat, how)),
  };
  const files = how.files ?? [];
  if (files.length === 0) return [{ ...common, text: called }];
  const album = files.length > 1 ? { media_group_id: `album-${books.files.size}` } : {};
  return files.map((file, index) => {
    const caption = index === 0 && called !== "" ? { caption: called, caption_entities: entitiesIn(called) } : {};
    return { ...common, ...album, ...media(books, file), ...caption };
  });
}

/** As Telegram finds them by itself. */
export function entitiesIn(text: string): Content[] {
  const found = (type: string, pattern: RegExp): Content[] =>
    [...text.matchAll(pattern)].map((match) => ({ type, offset: match.index, length: match[0].length }));
  const commands = found("bot_command", /(?<=^|\s)\/[a-z0-9_]+(@\w+)?/gi);
  const isInCommand = (at: number): boolean =>
    commands.some(({ offset, length }) => at >= (offset as number) && at < (offset as number) + (length as number));
  return [...commands, ...found("mention", /@\w{5,}/g).filter(({ offset }) => !isInCommand(offset as number))];
}

function call(text: string, username: string): string {
  return text.startsWith("/") ? text.replace(/^\/\w+/, (command) => `${command}@${username}`) : `@${username} ${text}`;
}

/** In a topic, what answers nothing answers the service message that has opened it: here, one of the bot. */
function answered({ me }: Books, chat: KnownChat, { answers, quotes, topic }: Saying): Content {
  const bot = { ...me, is_bot: true, first_name: "Guild" };
  const of = (id: number, content: Content): Content => ({
    reply_to_message: { message_id: id, date: 1_700_000_000, chat: wireChat(chat), ...content },
  });
  if (answers !== undefined) {
    const ours = chat.ours.get(Number(answers));
    const theirs = chat.messages.get(Number(answers));
    if (!ours && !theirs) throw new Error(`there is no message ${answers} in the chat ${chat.id}`);
    return of(Number(answers), ours ? { from: bot, text: ours.text } : { ...theirs });
  }
  if (quotes) return of(99, { from: SOMEBODY, text: quotes.text });
  return topic === undefined ? {} : of(Number(topic), { from: bot, forum_topic_created: { name: "A topic", icon_color: 0 } });
}

function media(books: Books, { name, mediaType, data }: NonNullable<Saying["files"]>[number]): Content {
  const put = (suffix: string, bytes: Uint8Array): { file_id: string; file_unique_id: string; file_size: number } => {
    const id = `F${books.files.size}-${suffix}`;
    books.files.set(id, bytes);
    return { file_id: id, file_unique_id: `u${id}`, file_size: bytes.byteLength };
  };
  const file = put("whole", data);
  if (mediaType.startsWith("image/") && mediaType !== "image/gif") {
    const small = { ...put("small", data.subarray(0, 10)), width: 90, height: 60 };
    return { photo: [small, { ...file, width: 1_280, height: 853 }] };
  }
  if (mediaType === "image/gif") {
    const animation = { ...file, file_name: name, mime_type: "video/mp4", width: 10, height: 10, duration: 1 };
    return { animation, document: { ...file, file_name: name, mime_type: "video/mp4" } };
  }
  if (mediaType === "audio/ogg") return { voice: { ...file, duration: 1, mime_type: mediaType } };
  if (mediaType.startsWith("audio/")) return { audio: { ...file, duration: 1, file_name: name, mime_type: mediaType } };
  if (mediaType.startsWith("video/"))
    return { video: { ...file, width: 1, height: 1, duration: 1, file_name: name, mime_type: mediaType } };
  return { document: { ...file, file_name: name, mime_type: mediaType } };
}
