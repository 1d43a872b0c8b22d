import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { ChannelAccount } from "../../../contract/channels.ts";
import type { Secret } from "../../../contract/secret.ts";
import {
  type Channel,
  ChannelTrouble,
  type ChatPlace,
  type Inbound,
  type Mark,
  type Outbound,
  SendTrouble,
} from "../../../kernel/channel.ts";
import type { ChannelParts } from "../../../kernel/channel-plugin.ts";
import { Failure } from "../../../kernel/failure.ts";
import { firstOf } from "../../../kernel/first-of.ts";
import { readJson } from "../../../kernel/read-json.ts";
import { partsFor } from "../format/parts-for.ts";
import { capped } from "../http-calls.ts";
import { Graph } from "./graph.ts";
import { accountTrouble, sendTrouble } from "./graph-trouble.ts";
import { upload } from "./media.ts";
import { eventsIn } from "./posted-events.ts";
import { Remembered } from "./remembered.ts";

const API_URL = "https://graph.facebook.com";
const MAX_CHARACTERS = 4_096;
/** WhatsApp stops showing it by then. */
const TYPING_MS = 25_000;
/** A token that ends is noticed, although nobody writes. */
const LOOK_EVERY_MS = 10 * 60_000;
const LOOK_MS = 30_000;
const MARKS: Readonly<Record<Mark, string>> = { seen: "👀", done: "✅", failed: "❌" };

const sentAnswer = z.object({ messages: z.array(z.object({ id: z.string().min(1) })).min(1) });
const numberAnswer = z.object({ display_phone_number: z.string().optional(), verified_name: z.string().optional() });
const mediaAnswer = z.object({ url: z.url(), file_size: z.coerce.number().optional() });

/** WhatsApp's Cloud API: Meta posts what people write, and takes replies over its Graph API. */
export function whatsappChannel(account: ChannelAccount, parts: ChannelParts): Channel {
  const whatsapp = new WhatsApp(account, parts);
  return {
    // The field that could name a message of ours comes back in statuses, and keeps nothing from being shown twice.
    abilities: { dedupes: false, typingMs: TYPING_MS, reacts: true, sendsFiles: true },
    listen: (inbound, signal) => whatsapp.listen(inbound, signal),
    receive: (request, inbound) => whatsapp.receive(request, inbound),
    partsOf: (text) => partsFor(text, { kind: "whatsapp", maxLength: MAX_CHARACTERS }),
    send: (message, signal) => whatsapp.send(message, signal),
    typing: (_place, signal, answers) => whatsapp.typing(answers, signal),
    react: (place, messageId, mark, signal) => whatsapp.react(place, messageId, mark, signal),
    download: (file, maxBytes, signal) => whatsapp.download(file.ref, maxBytes, signal),
  };
}

class WhatsApp {
  readonly #account: string;
  readonly #parts: ChannelParts;
  readonly #phoneNumberId: string;
  readonly #appSecret: Secret;
  readonly #verifyToken: Secret;
  readonly #graph: Graph;
  readonly #remembered = new Remembered();

  constructor({ account, token, app_secret, verify_token, phone_number_id, api_url }: ChannelAccount, parts: ChannelParts) {
    if (!token || !app_secret || !verify_token || phone_number_id === undefined)
      throw new ChannelTrouble("refused", "token, app_secret, verify_token and phone_number_id are needed");
    this.#account = account;
    this.#parts = parts;
    this.#phoneNumberId = phone_number_id;
    this.#appSecret = app_secret;
    this.#verifyToken = verify_token;
    this.#graph = new Graph(api_url ?? API_URL, () => token.reveal());
  }

  /** Nothing is connected: what is listened to is whether the token and the number still work. */
  async listen(inbound: Inbound, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      inbound.connected(await this.#look(signal));
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #look(signal: AbortSignal): Promise<string> {
    const time = firstOf([signal], LOOK_MS);
    try {
      const answer = await this.#graph.get(`${this.#own}?fields=display_phone_number,verified_name`, time.signal);
      const { display_phone_number: number, verified_name: name } = numberAnswer.parse(answer);
      return [name, number].filter(Boolean).join(" ") || this.#phoneNumberId;
    } catch (error) {
      throw accountTrouble(error, this.#parts.clock.now());
    } finally {
      time.over();
    }
  }

  async receive(request: Request, { take }: Pick<Inbound, "take">): Promise<Response> {
    if (request.method !== "POST") return this.#verify(new URL(request.url).searchParams);
    const body = new Uint8Array(await request.arrayBuffer());
    this.#checkSignature(request.headers.get("x-hub-signature-256") ?? "", body);
    const { messages, failures, unknown } = eventsIn(readJson(body), this.#phoneNumberId, this.#remembered);
    const about = { platform: "whatsapp", account: this.#account };
    for (const { id, code, problem } of failures)
      this.#parts.log.warn("WhatsApp has accepted a message and not delivered it", { ...about, id, code, problem });
    for (const type of unknown) this.#parts.log.info("a message of a kind that cannot be read", { ...about, type });
    if (messages.length > 0) await take(messages);
    return new Response(null, { status: 200 });
  }

  /** Meta asks once whether this address is the operator's. */
  #verify(query: URLSearchParams): Response {
    const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
    const isOurs = timingSafeEqual(digest(query.get("hub.verify_token") ?? ""), digest(this.#verifyToken.reveal()));
    const challenge = query.get("hub.challenge");
    if (query.get("hub.mode") !== "subscribe" || challenge === null || !isOurs)
      throw new Failure("request.forbidden", "this is not how Meta asks", {
        hint: "Give Meta the verify_token of this account, and let it verify the address again.",
      });
    return new Response(challenge, { headers: { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" } });
  }

  #checkSignature(header: string, body: Uint8Array): void {
    const given = Buffer.from(/^sha256=([0-9a-f]{64})$/i.exec(header)?.[1] ?? "", "hex");
    const expected = createHmac("sha256", this.#appSecret.reveal()).update(body).digest();
    if (given.length !== expected.length || !timingSafeEqual(given, expected))
      throw new Failure("request.unauthenticated", "the signature does not fit", {
        hint: "Posts are taken from Meta only, signed with the app_secret of this account.",
      });
  }

  async send(message: Outbound, signal: AbortSignal): Promise<{ readonly id: string }> {
    const content = await this.#contentOf(message, signal);
    const context = message.answers === null ? {} : { context: { message_id: message.answers } };
    const answer = await this.#post({ ...recipient(message.place), ...context, ...content }, signal);
    const { data } = sentAnswer.safeParse(answer);
    const id = data?.messages[0]?.id;
    if (id === undefined) throw new SendTrouble("unclear", "WhatsApp has answered without the message's id");
    if (message.part) this.#remembered.add(id, { by: null, text: message.part.plain });
    return { id };
  }

  async #contentOf({ part, file }: Outbound, signal: AbortSignal): Promise<object> {
    if (!file) return { type: "text", text: { body: part?.text ?? "", preview_url: false } };
    try {
      const { type, content } = await upload(this.#graph, this.#phoneNumberId, file, signal);
      return { type, [type]: content };
    } catch (error) {
      const trouble = sendTrouble(error, this.#parts.clock.now());
      // What was only brought there is seen by nobody.
      throw trouble.kind === "unclear" ? new SendTrouble("later", trouble.message, { cause: error }) : trouble;
    }
  }

  /** It also marks the message as read. */
  async typing(messageId: string | undefined, signal: AbortSignal): Promise<void> {
    if (messageId === undefined) return;
    await this.#post({ status: "read", message_id: messageId, typing_indicator: { type: "text" } }, signal);
  }

  async react(place: ChatPlace, messageId: string, mark: Mark | null, signal: AbortSignal): Promise<void> {
    const reaction = { message_id: messageId, emoji: mark === null ? "" : MARKS[mark] };
    await this.#post({ ...recipient(place), type: "reaction", reaction }, signal);
  }

  async download(mediaId: string, maxBytes: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const answer = await this.#graph.get(`${encodeURIComponent(mediaId)}?phone_number_id=${this.#own}`, signal);
    const { url, file_size: size } = mediaAnswer.parse(answer);
    if (size !== undefined && size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`);
    return capped(await this.#graph.open(url, signal), maxBytes);
  }

  async #post(body: object, signal: AbortSignal): Promise<unknown> {
    try {
      return await this.#graph.post(`${this.#own}/messages`, { messaging_product: "whatsapp", ...body }, signal);
    } catch (error) {
      throw sendTrouble(error, this.#parts.clock.now());
    }
  }

  get #own(): string {
    return encodeURIComponent(this.#phoneNumberId);
  }
}

/** A person is a phone number, or an id where they show none. */
function recipient({ chat, chatType }: ChatPlace): object {
  if (chatType !== "dm") return { recipient_type: "group", to: chat };
  return { recipient_type: "individual", ...(/^\d+$/.test(chat) ? { to: chat } : { recipient: chat }) };
}
