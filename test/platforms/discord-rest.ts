import type { IncomingMessage, ServerResponse } from "node:http";
import type { DiscordWorld, WorldChannel, WorldMessage } from "./discord-world.ts";
import type { Trouble } from "./stand-in.ts";

const MAX_LENGTH = 2_000;
const MAX_NONCE = 25;
const MAX_FILE = 10 * 1_048_576;
const SUPPRESS_EMBEDS = 1 << 2;
const NONCE_MS = 5 * 60_000;

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface SentBody {
  readonly content?: string;
  readonly nonce?: string | number;
  readonly enforce_nonce?: boolean;
  readonly flags?: number;
  readonly allowed_mentions?: { readonly parse?: readonly string[]; readonly users?: readonly string[]; readonly replied_user?: boolean };
  readonly message_reference?: { readonly message_id: string; readonly fail_if_not_exists?: boolean };
}

interface Sent {
  readonly body: SentBody;
  readonly files: readonly { readonly name: string; readonly mediaType: string; readonly data: Uint8Array }[];
}

export interface RestHooks {
  readonly world: DiscordWorld;
  readonly token: () => string;
  readonly base: () => string;
  readonly gatewayUrl: () => string;
  readonly troubleFor: (chat: string) => Trouble;
  readonly accepted: (message: WorldMessage) => void;
  readonly complain: (words: string) => void;
}

/** Discord's REST API, as far as a bot that talks needs it. */
export class DiscordRest {
  readonly #hooks: RestHooks;
  readonly #nonces = new Map<string, { readonly id: string; readonly at: number }>();
  readonly #buckets = new Map<string, { sent: number; resetsAt: number }>();
  readonly #waits = new Map<string, number>();
  /** How many messages a channel takes in five seconds. The real one: five. */
  perFiveSeconds = 1_000;
  retryAfterMs = 1_200;
  typed: string[] = [];
  /** Whoever was called by what the bot wrote. */
  pinged: string[] = [];
  /** Addresses that were opened to show what is there. */
  opened: string[] = [];
  #globalUntil = 0;
  #wasTold = false;

  constructor(hooks: RestHooks) {
    this.#hooks = hooks;
  }

  limitEverything(ms: number): void {
    this.#globalUntil = Date.now() + ms;
    this.#wasTold = false;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? "/", "http://x");
    const cdn = /^\/attachments\/(\d+)\/(\d+)\//.exec(url.pathname);
    if (cdn) return this.#file(response, url, cdn[1] as string, cdn[2] as string);
    const answer = await this.#answer(request, url, Buffer.concat(chunks), response);
    if (!answer) return;
    const { status, body, headers } = answer;
    const isText = typeof body === "string";
    response.writeHead(status, {
      ...(body === undefined ? {} : { "content-type": isText ? "text/html" : "application/json" }),
      ...headers,
    });
    response.end(body === undefined ? undefined : isText ? body : JSON.stringify(body));
  }

  async #answer(request: IncomingMessage, url: URL, data: Buffer, response: ServerResponse): Promise<Answer | undefined> {
    const { world, base, complain } = this.#hooks;
    const path = /^\/api\/v10(\/.*)$/.exec(url.pathname)?.[1]?.replaceAll("%40", "@");
    if (path === undefined) return error(404, 0, "404: Not Found");
    if (!/^DiscordBot \(/.test(request.headers["user-agent"] ?? "")) {
      complain("the user agent is not a bot's");
      return error(403, 40333, "internal network error");
    }
    if (request.headers.authorization !== `Bot ${this.#hooks.token()}`) return error(401, 0, "401: Unauthorized");
    if (Date.now() < this.#globalUntil) {
      if (this.#wasTold) complain("asked although everything was limited");
      this.#wasTold = true;
      return this.#limited(this.#globalUntil - Date.now(), true);
    }
    const route = `${request.method} ${path.replaceAll(/\/\d+/g, "/:id").replace(/\/reactions\/[^/]+/, "/reactions/:emoji")}`;
    const [channelId = "", messageId = ""] = [...path.matchAll(/\/(?:channels|messages)\/(\d+)/g)].map(([, id]) => id as string);
    if (route === "GET /users/@me")
      return { status: 200, body: { id: world.bot.id, username: world.bot.name, discriminator: "0", bot: true } };
    if (route === "GET /gateway/bot") {
      const limit = { total: 1000, remaining: 999, reset_after: 86_400_000, max_concurrency: 1 };
      return { status: 200, body: { url: this.#hooks.gatewayUrl(), shards: 1, session_start_limit: limit } };
    }
    if (route === "GET /guilds/:id/roles") {
      const roles = [
        { id: world.guild, name: "@everyone" },
        { id: world.botRole, name: world.bot.name, managed: true, tags: { bot_id: world.bot.id } },
      ];
      return path === `/guilds/${world.guild}/roles` ? { status: 200, body: roles } : error(404, 10004, "Unknown Guild");
    }
    const channel = world.channels.get(channelId);
    if (!channel) return error(404, 10003, "Unknown Channel");
    const message = channel.messages.get(messageId);
    if (messageId !== "" && !message) return error(404, 10008, "Unknown Message");
    if (route === "GET /channels/:id") return { status: 200, body: world.channelJson(channel) };
    if (route === "POST /channels/:id/typing") {
      this.typed.push(channelId);
      return { status: 204 };
    }
    if (route === "POST /channels/:id/messages") return this.#send(channel, await sentOf(request, data), response);
    if (!message) return error(405, 0, "405: Method Not Allowed");
    if (route === "GET /channels/:id/messages/:id") return { status: 200, body: world.messageJson(message, true, base()) };
    if (route === "PATCH /channels/:id/messages/:id") return this.#edit(message, (await sentOf(request, data)).body);
    if (route.endsWith("/reactions/:emoji/@me")) return this.#react(message, path, request.method === "PUT");
    return error(405, 0, "405: Method Not Allowed");
  }

  #send(channel: WorldChannel, { body, files }: Sent, response: ServerResponse): Answer | undefined {
    const { world, troubleFor, accepted, base } = this.#hooks;
    const trouble = troubleFor(world.chatOf(channel).chat);
    if (trouble === "cut") return void response.destroy();
    if (trouble === "server error") return { status: 502, body: "<html>Bad Gateway</html>" };
    if (trouble === "gone") return error(403, 50001, "Missing Access");
    if (trouble === "rate limit") this.#waits.set(channel.id, Date.now() + this.retryAfterMs);
    else if (Date.now() < (this.#waits.get(channel.id) ?? 0)) this.#hooks.complain("sent before the time to wait was over");
    const wait = (this.#waits.get(channel.id) ?? 0) - Date.now();
    if (wait > 0) return this.#limited(wait, false);
    const bucket = this.#bucketOf(channel.id);
    if (bucket.sent >= this.perFiveSeconds) {
      this.#hooks.complain("sent although its bucket was used up");
      return this.#limited(bucket.resetsAt - Date.now(), false);
    }
    const wrong = this.#wrong(body, files, channel);
    if (wrong) return wrong;
    bucket.sent++;
    const message = this.#create(channel, body, files, accepted);
    if (trouble === "lose answer") return void response.destroy();
    return { status: 200, body: world.messageJson(message, true, base()), headers: headersOf(bucket, this.perFiveSeconds) };
  }

  #create(channel: WorldChannel, body: SentBody, files: Sent["files"], accepted: (message: WorldMessage) => void): WorldMessage {
    const { world } = this.#hooks;
    const nonce = body.nonce === undefined ? null : String(body.nonce);
    const known = nonce !== null && body.enforce_nonce === true ? this.#nonces.get(nonce) : undefined;
    const shown = known && Date.now() - known.at < NONCE_MS ? world.find(known.id) : undefined;
    if (shown) return shown;
    const reference = body.message_reference?.message_id;
    const message: WorldMessage = {
      id: world.newId(),
      channelId: channel.id,
      author: { ...world.bot, isBot: true },
      content: body.content ?? "",
      attachments: files.map((file) => ({ id: world.newId(), ...file })),
      answers: reference !== undefined && channel.messages.has(reference) ? reference : null,
      forwarded: null,
      reactions: new Map(),
      nonce,
      roles: [],
      webhookId: null,
      type: reference === undefined ? 0 : 19,
      edits: 0,
    };
    channel.messages.set(message.id, message);
    if (nonce !== null) this.#nonces.set(nonce, { id: message.id, at: Date.now() });
    this.#affect(message, body);
    accepted(message);
    return message;
  }

  #edit(message: WorldMessage, body: SentBody): Answer {
    const { world, base } = this.#hooks;
    if (message.author.id !== world.bot.id) return error(403, 50005, "Cannot edit a message authored by another user");
    const wrong = this.#wrong(body, message.attachments, null);
    if (wrong) return wrong;
    message.content = body.content ?? message.content;
    message.edits++;
    this.#affect(message, body);
    return { status: 200, body: world.messageJson(message, true, base()) };
  }

  #wrong(body: SentBody, files: Sent["files"], channel: WorldChannel | null): Answer | undefined {
    const { content = "", nonce, message_reference: reference } = body;
    const refuse = (answer: Answer, words: string): Answer => {
      this.#hooks.complain(words);
      return answer;
    };
    if ([...content].length > MAX_LENGTH)
      return refuse(malformed("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length."), "a message is too long");
    if (content.trim() === "" && files.length === 0) return refuse(error(400, 50006, "Cannot send an empty message"), "a message is empty");
    if (nonce !== undefined && String(nonce).length > MAX_NONCE)
      return refuse(malformed("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length."), "a nonce is too long");
    if (files.some(({ data }) => data.byteLength > MAX_FILE))
      return refuse(error(413, 40005, "Request entity too large"), "a file is too large");
    if (channel && reference && !channel.messages.has(reference.message_id) && reference.fail_if_not_exists !== false)
      return refuse(malformed("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message"), "an unknown message is answered");
    return undefined;
  }

  /** What a message does besides being there. Without `allowed_mentions` whoever is named is called. */
  #affect({ content, answers }: WorldMessage, { allowed_mentions: allowed, flags = 0 }: SentBody): void {
    if ((flags & SUPPRESS_EMBEDS) === 0) for (const [address] of content.matchAll(/https?:\/\/\S+/g)) this.opened.push(address);
    const parse = allowed ? (allowed.parse ?? []) : ["everyone", "roles", "users"];
    if (parse.includes("everyone")) for (const [call] of content.matchAll(/@everyone|@here/g)) this.pinged.push(call);
    if (parse.includes("roles")) for (const [call] of content.matchAll(/<@&\d+>/g)) this.pinged.push(call);
    if (parse.includes("users")) for (const [call] of content.matchAll(/<@!?\d+>/g)) this.pinged.push(call);
    if (answers !== null && (allowed ? allowed.replied_user === true : true)) this.pinged.push("whoever is answered");
  }

  #react(message: WorldMessage, path: string, isNew: boolean): Answer {
    const { world } = this.#hooks;
    const emoji = decodeURIComponent(/\/reactions\/([^/]+)/.exec(path)?.[1] ?? "");
    if (!/^\p{Emoji}/u.test(emoji)) return error(400, 10014, "Unknown Emoji");
    const of = message.reactions.get(emoji);
    if (isNew) message.reactions.set(emoji, new Set([...(of ?? []), world.bot.id]));
    else if (!of?.delete(world.bot.id)) return error(404, 10014, "Unknown Emoji");
    return { status: 204 };
  }

  #bucketOf(channelId: string): { sent: number; resetsAt: number } {
    const known = this.#buckets.get(channelId);
    if (known && known.resetsAt > Date.now()) return known;
    const fresh = { sent: 0, resetsAt: Date.now() + 5_000 };
    this.#buckets.set(channelId, fresh);
    return fresh;
  }

  #limited(ms: number, isGlobal: boolean): Answer {
    const seconds = ms / 1_000;
    return {
      status: 429,
      body: { message: "You are being rate limited.", retry_after: seconds, global: isGlobal },
      headers: {
        "retry-after": String(Math.ceil(seconds)),
        "x-ratelimit-scope": isGlobal ? "global" : "user",
        ...(isGlobal ? { "x-ratelimit-global": "true" } : { "x-ratelimit-reset-after": seconds.toFixed(3), "x-ratelimit-remaining": "0" }),
      },
    };
  }

  #file(response: ServerResponse, url: URL, channelId: string, attachmentId: string): void {
    const { world } = this.#hooks;
    const isFresh = Number.parseInt(url.searchParams.get("ex") ?? "0", 16) * 1_000 > Date.now();
    const all = [...(world.channels.get(channelId)?.messages.values() ?? [])].flatMap(({ attachments }) => attachments);
    const file = all.find(({ id }) => id === attachmentId);
    const isGiven = isFresh && url.searchParams.get("hm") === String(world.epoch);
    if (!file || !isGiven) {
      response.writeHead(404).end("This content is no longer available.");
      return;
    }
    response.writeHead(200, { "content-type": file.mediaType, "content-length": file.data.byteLength }).end(file.data);
  }
}

async function sentOf(request: IncomingMessage, data: Buffer): Promise<Sent> {
  const type = request.headers["content-type"] ?? "";
  if (!type.startsWith("multipart/form-data")) return { body: JSON.parse(data.toString()) as SentBody, files: [] };
  const form = await new Response(new Uint8Array(data), { headers: { "content-type": type } }).formData();
  const files: Sent["files"][number][] = [];
  for (const [key, value] of form)
    if (value instanceof File && /^files\[\d+\]$/.test(key))
      files.push({ name: value.name, mediaType: value.type, data: new Uint8Array(await value.arrayBuffer()) });
  return { body: JSON.parse(String(form.get("payload_json") ?? "{}")) as SentBody, files };
}

function headersOf({ sent, resetsAt }: { sent: number; resetsAt: number }, limit: number): Record<string, string> {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(limit - sent),
    "x-ratelimit-reset-after": (Math.max(0, resetsAt - Date.now()) / 1_000).toFixed(3),
    "x-ratelimit-bucket": "0123456789abcdef",
  };
}

function error(status: number, code: number, message: string): Answer {
  return { status, body: { message, code } };
}

function malformed(field: string, code: string, message: string): Answer {
  const errors = { [field]: { _errors: [{ code, message }] } };
  return { status: 400, body: { message: "Invalid Form Body", code: 50035, errors } };
}
