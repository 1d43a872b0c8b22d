import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { freePort } from "../free-port.ts";
import type { Saying, Shown, StandIn, Trouble } from "./stand-in.ts";
import { Refusal, tooMany } from "./telegram-answer.ts";
import { type BotMessage, Chats, type KnownChat, wireChat } from "./telegram-chats.ts";
import { answerCall, type Books, SENDING } from "./telegram-methods.ts";
import { type Call, readCall } from "./telegram-request.ts";
import { contentOf, entitiesIn } from "./telegram-saying.ts";
import { UpdateQueue } from "./telegram-updates.ts";

export interface TelegramOptions {
  readonly token?: string;
  readonly username?: string;
  /** Least time between two messages of the bot in one chat; 0: no limit. */
  readonly perChatMs?: number;
}

/** The Bot API on this machine. */
export async function telegramStandIn(options: TelegramOptions = {}): Promise<TelegramStandIn> {
  const standIn = new TelegramStandIn(options);
  await standIn.up();
  return standIn;
}

export class TelegramStandIn implements StandIn {
  readonly platform = "telegram";
  readonly username: string;
  readonly complaints: string[] = [];
  readonly accepted: BotMessage[] = [];
  readonly updates = new UpdateQueue((problem) => this.complaints.push(problem));
  readonly books: Books;
  /** Which calls would put something before people, in order. */
  readonly calls: string[] = [];
  readonly #token: string;
  readonly #server = createServer((request, response) => void this.#serve(request, response).catch(() => response.destroy()));
  #port = 0;
  #troubles: { readonly kind: Trouble; left: number; readonly chat: string | undefined }[] = [];

  constructor({ token = "4242:AAstandInTokenOfTheBotItself_0123456", username = "guild_bot", perChatMs = 0 }: TelegramOptions) {
    this.#token = token;
    this.username = username;
    const me = { id: Number(token.split(":")[0]), username };
    const complain = (problem: string): void => void this.complaints.push(problem);
    this.books = {
      me,
      chats: new Chats(),
      accepted: this.accepted,
      files: new Map(),
      reactions: new Map(),
      typing: [],
      perChatMs,
      hidesSizes: false,
      complain,
    };
  }

  get account(): Readonly<Record<string, unknown>> {
    return { token: this.#token, api_url: `http://127.0.0.1:${this.#port}` };
  }

  get botId(): string {
    return String(this.books.me.id);
  }

  attach(): void {}

  async say(text: string, how: Saying = {}): Promise<string> {
    const { peer = "7", group } = how;
    const chat = this.chat(group ?? peer);
    if (how.topic !== undefined) chat.topics.add(Number(how.topic));
    const isForwarded = how.quotes?.forwarded === true;
    // What is passed on is a message of its own: what one says about it is another, before it.
    if (isForwarded && text.trim() !== "") await this.say(text, { ...how, quotes: undefined as never });
    const said = contentOf(this.books, chat, isForwarded ? (how.quotes?.text ?? "") : text, how);
    let first = 0;
    for (const content of said) {
      const id = this.deliver(chat, { from: { id: Number(peer), is_bot: false, first_name: how.name ?? `Person ${peer}` }, ...content });
      first ||= id;
    }
    return String(first);
  }

  /** A message as it is, with whatever a test wants in it. Answers its number. */
  deliver(chat: KnownChat, content: Readonly<Record<string, unknown>>, kind = "message"): number {
    const id = ++chat.lastId;
    const words = typeof content.text === "string" ? { entities: entitiesIn(content.text) } : {};
    const message = { message_id: id, date: 1_800_000_000, chat: wireChat(chat), ...words, ...content };
    chat.messages.set(id, message);
    this.updates.add(kind, message);
    return id;
  }

  chat(id: string, type?: KnownChat["type"]): KnownChat {
    return this.books.chats.meet(id, type);
  }

  shown(chat: string, topic?: string): readonly Shown[] {
    return this.accepted.filter((message) => message.chat === chat && (topic === undefined || message.topic === topic));
  }

  trouble(kind: Trouble, times?: number, chat?: string): void {
    if (kind === "none") this.#troubles = [];
    else this.#troubles.push({ kind, left: times ?? (kind === "bad token" || kind === "gone" ? Number.POSITIVE_INFINITY : 1), chat });
  }

  /** Nobody can reach it, until `up`. */
  async down(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async up(): Promise<void> {
    this.#port ||= await freePort();
    await once(this.#server.listen(this.#port, "127.0.0.1"), "listening");
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.down();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, isFile, token, rest = ""] = /^\/(file\/)?bot([^/]+)\/(.+)$/.exec(request.url ?? "") ?? [];
    const call = token === undefined ? undefined : await readCall(request, rest);
    if (token !== undefined && this.#isRefused(token)) return end(response, new Refusal(401, "Unauthorized"));
    if (token === undefined || !/^\d+:[\w-]{20,}$/.test(token)) return end(response, new Refusal(404, "Not Found"));
    if (isFile) return this.#serveFile(rest, response);
    if (!call) return end(response, new Refusal(400, "Bad Request: can't parse the request"));
    if (call.method === "getUpdates") return this.#poll(call, response);
    if (call.method === "deleteWebhook") {
      this.updates.webhook = "";
      return end(response, true);
    }
    if (SENDING.has(call.method)) this.calls.push(call.method);
    const trouble = SENDING.has(call.method) ? this.#troubleFor(String(call.fields.chat_id)) : undefined;
    if (trouble === "cut") return void response.destroy();
    if (trouble === "server error") return void response.writeHead(502, { "content-type": "text/html" }).end("<h1>502 Bad Gateway</h1>");
    try {
      const result = this.#answer(call, trouble);
      if (trouble === "lose answer") return void response.destroy();
      end(response, result);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      end(response, error);
    }
  }

  #answer(call: Call, trouble: Trouble | undefined): unknown {
    const chat = this.books.chats.get(call.fields.chat_id);
    if (trouble === "gone") throw new Refusal(403, "Forbidden: bot was blocked by the user");
    if (trouble === "rate limit") {
      if (chat) chat.notBefore = performance.now() + 1_000;
      throw tooMany(1);
    }
    return answerCall(this.books, call);
  }

  #poll({ fields }: Call, response: ServerResponse): void {
    const polling = this.updates.poll(fields, (result) => end(response, result));
    response.on("close", () => polling.gone());
  }

  #serveFile(path: string, response: ServerResponse): void {
    const data = this.books.files.get(decodeURIComponent(path.replace(/^media\//, "")));
    if (data) response.writeHead(200, { "content-type": "application/octet-stream" }).end(data);
    else end(response, new Refusal(404, "Not Found"));
  }

  #isRefused(token: string): boolean {
    return this.#troubles.some(({ kind }) => kind === "bad token") || (token !== this.#token && /^\d+:[\w-]{20,}$/.test(token));
  }

  #troubleFor(chat: string): Trouble | undefined {
    const trouble = this.#troubles.find((one) => one.kind !== "bad token" && one.left > 0 && (one.chat ?? chat) === chat);
    if (trouble) trouble.left--;
    return trouble?.kind;
  }
}

function end(response: ServerResponse, result: unknown): void {
  const isRefusal = result instanceof Refusal;
  const body = isRefusal ? result.body : { ok: true, result };
  response.writeHead(isRefusal ? result.status : 200, { "content-type": "application/json" }).end(JSON.stringify(body));
}
