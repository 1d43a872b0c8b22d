import { type Api, InputFile } from "grammy";
import type { Message } from "grammy/types";
import { type ChatPlace, type Mark, type Outbound, type OutboundFile, type Part, SendTrouble } from "../../../kernel/channel.ts";
import type { Log } from "../../../kernel/log.ts";
import type { BotApi } from "./bot-api.ts";
import { GENERAL_TOPIC } from "./read-updates.ts";
import { isRefusedFor, refusalIn, sendTroubleOf } from "./telegram-trouble.ts";

const UNPARSABLE = /can't parse entities/i;
const UNCHANGED = /message is not modified/i;
/** What is said of a file alone, so that it may do as a document. */
const OF_THE_FILE = /PHOTO|IMAGE|VOICE|photo|image|voice|wrong type of the file/;
const MAX_PHOTO_BYTES = 10_000_000;

/** Of the few that bots may set. */
const MARKS = { seen: "👀", done: "👍", failed: "😢" } as const satisfies Record<Mark, string>;

/** How messages of one bot leave. */
export class MessageSender {
  readonly #api: BotApi;
  readonly #log: Log;

  constructor(api: BotApi, log: Log) {
    this.#api = api;
    this.#log = log;
  }

  async send({ place, part, file, answers }: Outbound, signal: AbortSignal): Promise<{ readonly id: string }> {
    const api = this.#api.calls(signal);
    const sent = await this.#inChat(place, answers, async (chat, where) => {
      if (part) return sendText(api, chat, part, where);
      if (file) return sendFile(api, chat, file, where);
      throw new SendTrouble("refused", "there is nothing to send");
    });
    return { id: String(sent.message_id) };
  }

  async edit({ place, part }: Outbound, id: string, signal: AbortSignal): Promise<void> {
    if (!part) throw new SendTrouble("refused", "a file cannot be put in the place of words");
    const put = (text: string, form: { parse_mode?: "HTML" }): Promise<unknown> =>
      this.#api.calls(signal).editMessageText(place.chat, Number(id), text, { ...form, link_preview_options: NO_PREVIEW });
    try {
      await put(part.text, { parse_mode: "HTML" }).catch((error: unknown) => {
        if (!isRefusedFor(error, UNPARSABLE)) throw error;
        return put(part.plain, {});
      });
    } catch (error) {
      if (!isRefusedFor(error, UNCHANGED)) throw sendTroubleOf(error);
    }
  }

  /** The general topic has a number here, and in no other call. */
  async typing({ chat, topic }: ChatPlace, signal: AbortSignal): Promise<void> {
    const thread = topic === null ? {} : { message_thread_id: Number(topic) };
    await this.#api.calls(signal).sendChatAction(chat, "typing", thread).catch(throwTrouble);
  }

  async react({ chat }: ChatPlace, messageId: string, mark: Mark | null, signal: AbortSignal): Promise<void> {
    const marks = mark === null ? [] : [{ type: "emoji" as const, emoji: MARKS[mark] }];
    await this.#api.calls(signal).setMessageReaction(chat, Number(messageId), marks, {}).catch(throwTrouble);
  }

  /** A group that has become a supergroup has another id, and its messages have other numbers. */
  async #inChat(place: ChatPlace, answers: string | null, run: (chat: string, where: Where) => Promise<Message>): Promise<Message> {
    try {
      return await run(place.chat, whereOf(place, answers)).catch((error: unknown) => {
        const movedTo = refusalIn(error)?.movedTo ?? null;
        if (movedTo === null) throw error;
        this.#log.warn("a group has a new id: bindings with the old one do not fit any more", {
          platform: "telegram",
          chat: place.chat,
          movedTo,
        });
        return run(movedTo, whereOf(place, null));
      });
    } catch (error) {
      throw sendTroubleOf(error);
    }
  }
}

async function sendText(api: Api, chat: string, part: Part, where: Where): Promise<Message> {
  const how = { ...where, link_preview_options: NO_PREVIEW };
  try {
    return await api.sendMessage(chat, part.text, { ...how, parse_mode: "HTML" });
  } catch (error) {
    if (!isRefusedFor(error, UNPARSABLE)) throw error;
    return api.sendMessage(chat, part.plain, how);
  }
}

async function sendFile(api: Api, chat: string, { name, mediaType, data }: OutboundFile, where: Where): Promise<Message> {
  const file = (): InputFile => new InputFile(data, headerName(name));
  try {
    if (/^image\/(jpeg|png|webp)$/.test(mediaType) && data.byteLength <= MAX_PHOTO_BYTES) return await api.sendPhoto(chat, file(), where);
    if (/^audio\/(ogg|opus)\b/.test(mediaType)) return await api.sendVoice(chat, file(), where);
  } catch (error) {
    if (!isRefusedFor(error, OF_THE_FILE)) throw error;
  }
  return api.sendDocument(chat, file(), { ...where, disable_content_type_detection: true });
}

/** An address in an answer is not to be opened by anybody before somebody opens it: what is in it would have left then. */
const NO_PREVIEW = { is_disabled: true } as const;

interface Where {
  readonly message_thread_id?: number;
  readonly reply_parameters?: { readonly message_id: number; readonly allow_sending_without_reply: boolean };
}

function whereOf({ topic }: ChatPlace, answers: string | null): Where {
  return {
    ...(topic === null || topic === GENERAL_TOPIC ? {} : { message_thread_id: Number(topic) }),
    ...(answers === null ? {} : { reply_parameters: { message_id: Number(answers), allow_sending_without_reply: true } }),
  };
}

/** The client writes it into a header as it is. */
function headerName(name: string): string {
  return name.replaceAll(/[\p{Cc}";\\]/gu, "_").trim() || "file";
}

function throwTrouble(error: unknown): never {
  throw sendTroubleOf(error);
}
