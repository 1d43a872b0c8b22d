import type { IncomingMessage, ServerResponse } from "node:http";
import { fileView, type SlackWorkspace } from "./slack-workspace.ts";
import type { Trouble } from "./stand-in.ts";

export interface Credentials {
  readonly botToken: string;
  readonly appToken: string;
}

type Fields = Readonly<Record<string, string>>;
type Answer = Readonly<Record<string, unknown>>;

/** Refused with Slack's word for it. */
class Refusal extends Error {}

const MAX_LENGTH = 40_000;
/** Slack's advice; what is longer is shown badly. */
const ADVISED_LENGTH = 4_000;
const SENDS = new Set(["chat.postMessage", "files.completeUploadExternal"]);
const TS = /^\d{10}\.\d{6}$/;

/** Slack's Web API: almost everything is answered with 200, and `ok` says what came of it. */
export class SlackWebApi {
  readonly complaints: string[] = [];
  /** Everything that was asked, by method. */
  readonly asked: { readonly method: string; readonly fields: Fields }[] = [];
  readonly #workspace: SlackWorkspace;
  readonly #credentials: Credentials;
  readonly #base: () => string;
  readonly #ticket: () => string;
  #trouble: { kind: Trouble; times: number; chat: string | undefined } = { kind: "none", times: 0, chat: undefined };
  /** Of a channel: nothing may be sent before. */
  readonly #pausedUntil = new Map<string, number>();

  constructor(workspace: SlackWorkspace, credentials: Credentials, base: () => string, ticket: () => string) {
    this.#workspace = workspace;
    this.#credentials = credentials;
    this.#base = base;
    this.#ticket = ticket;
  }

  trouble(kind: Trouble, times: number, chat: string | undefined): void {
    this.#trouble = { kind, times, chat: chat === undefined ? undefined : this.#workspace.find(chat) };
  }

  async answer(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const path = new URL(request.url ?? "/", this.#base()).pathname;
    if (path.startsWith("/upload/")) return this.#upload(path.split("/").at(-1) as string, body, response);
    if (path.startsWith("/files-pri/")) return this.#file(path.split("/")[2] as string, request, response);
    const method = /^\/api\/([\w.]+)$/.exec(path)?.[1];
    if (request.method !== "POST" || !method) return send(response, { ok: false, error: "unknown_method" });
    const fields = fieldsOf(request, body);
    this.asked.push({ method, fields });
    const trouble = SENDS.has(method) ? this.#troubleFor(fields.channel ?? fields.channel_id) : "none";
    if (trouble === "cut") return void request.socket.destroy();
    if (trouble === "server error") return void response.writeHead(503).end("upstream connect error");
    if (trouble === "rate limit") return this.#limit(fields.channel ?? fields.channel_id ?? "", response);
    const answered = this.#answered(method, fields, request.headers.authorization, trouble === "gone");
    if (trouble === "lose answer") return void request.socket.destroy();
    send(response, answered);
  }

  #answered(method: string, fields: Fields, authorization: string | undefined, isGone: boolean): Answer {
    try {
      this.#checkToken(method, authorization);
      if (isGone) throw new Refusal("is_archived");
      const run = this.#methods[method];
      if (!run) throw new Refusal("unknown_method");
      return { ok: true, ...run(fields) };
    } catch (error) {
      if (error instanceof Refusal) return { ok: false, error: error.message };
      throw error;
    }
  }

  #checkToken(method: string, authorization: string | undefined): void {
    const { botToken, appToken } = this.#credentials;
    if (authorization === undefined) throw new Refusal("not_authed");
    const token = authorization.replace(/^Bearer /, "");
    const [wanted, other] = method === "apps.connections.open" ? [appToken, botToken] : [botToken, appToken];
    if (token === other) throw new Refusal("not_allowed_token_type");
    if (token !== wanted || this.#trouble.kind === "bad token") throw new Refusal("invalid_auth");
  }

  #troubleFor(channel: string | undefined): Trouble {
    const { kind, times, chat } = this.#trouble;
    if (kind === "bad token" || times <= 0 || (chat !== undefined && chat !== channel)) return "none";
    this.#trouble = times === 1 ? { kind: "none", times: 0, chat } : { kind, times: times - 1, chat };
    return kind;
  }

  #limit(channel: string, response: ServerResponse): void {
    this.#pausedUntil.set(channel, Date.now() + 950);
    response.writeHead(429, { "retry-after": "1", "content-type": "application/json" }).end('{"ok":false,"error":"ratelimited"}');
  }

  readonly #methods: Readonly<Record<string, (fields: Fields) => Answer>> = {
    "auth.test": () => {
      const { team, botId, botName } = this.#workspace;
      return { url: this.#base(), team: "Acme", user: botName, team_id: team, user_id: botId, bot_id: "B0BOT" };
    },
    "apps.connections.open": () => ({ url: `${this.#base().replace("http", "ws")}/link/?ticket=${this.#ticket()}&app_id=A0APP` }),
    "chat.postMessage": (fields) => {
      const channel = this.#writable(fields.channel);
      const thread = this.#thread(channel, fields.thread_ts);
      const { ts, text } = this.#workspace.add({ channel, user: this.#workspace.botId, text: this.#text(fields), thread });
      return { channel, ts, message: { type: "message", user: this.#workspace.botId, text, ts } };
    },
    "chat.update": (fields) => {
      const message = this.#workspace.message(this.#writable(fields.channel), fields.ts ?? "");
      if (!message) throw new Refusal("message_not_found");
      if (message.user !== this.#workspace.botId) throw new Refusal("cant_update_message");
      message.text = this.#text(fields);
      message.edits++;
      return { channel: message.channel, ts: message.ts, text: message.text };
    },
    "reactions.add": (fields) => {
      const users = this.#reaction(fields);
      if (users.has(this.#workspace.botId)) throw new Refusal("already_reacted");
      users.add(this.#workspace.botId);
      return {};
    },
    "reactions.remove": (fields) => {
      if (!this.#reaction(fields).delete(this.#workspace.botId)) throw new Refusal("no_reaction");
      return {};
    },
    "reactions.get": ({ channel = "", timestamp = "" }) => {
      const message = this.#workspace.message(channel, timestamp);
      if (!message) throw new Refusal("message_not_found");
      const reactions = [...message.reactions].map(([name, users]) => ({ name, users: [...users], count: users.size }));
      return { type: "message", channel, message: { ts: timestamp, reactions: reactions.filter(({ count }) => count > 0) } };
    },
    "users.info": ({ user = "" }) => {
      const name = this.#workspace.names.get(user);
      if (name === undefined) throw new Refusal("user_not_found");
      return { user: { id: user, name: name.toLowerCase(), real_name: name, profile: { display_name: name } } };
    },
    "conversations.replies": ({ channel = "", ts = "" }) => {
      const root = this.#workspace.message(channel, ts);
      if (!root) throw new Refusal("thread_not_found");
      return { messages: [{ type: "message", user: root.user, text: root.text, ts, thread_ts: ts }], has_more: true };
    },
    "files.info": ({ file = "" }) => {
      const found = this.#workspace.files.get(file);
      if (!found) throw new Refusal("file_not_found");
      const address = this.#workspace.address ?? `${this.#base()}/files-pri/${found.id}/${encodeURIComponent(found.name)}`;
      return { file: { ...fileView(found), url_private: address, url_private_download: address } };
    },
    "files.getUploadURLExternal": ({ filename = "", length = "" }) => {
      if (filename === "" || !/^[1-9]\d*$/.test(length)) throw new Refusal("invalid_arguments");
      const { id } = this.#workspace.addFile(filename, "application/octet-stream", Number(length), null);
      return { file_id: id, upload_url: `${this.#base()}/upload/v1/${id}` };
    },
    "files.completeUploadExternal": (fields) => {
      const channel = this.#writable(fields.channel_id);
      const thread = this.#thread(channel, fields.thread_ts);
      const ids = (JSON.parse(fields.files ?? "[]") as { id: string }[]).map(({ id }) => id);
      const files = ids.map((id) => this.#workspace.files.get(id));
      if (files.length === 0 || files.some((file) => !file?.data)) throw new Refusal("file_not_found");
      for (const file of files) if (file) this.#workspace.add({ channel, user: this.#workspace.botId, text: "", thread, file });
      return { files: files.map((file) => ({ id: file?.id, title: file?.name })) };
    },
  };

  #writable(channel = ""): string {
    if (Date.now() < (this.#pausedUntil.get(channel) ?? 0)) this.complaints.push(`${channel} was written to before Retry-After`);
    if (this.#workspace.strange.has(channel)) throw new Refusal("not_in_channel");
    if (!this.#workspace.messages.some((message) => message.channel === channel)) throw new Refusal("channel_not_found");
    return channel;
  }

  #thread(channel: string, ts: string | undefined): string | null {
    if (ts === undefined) return null;
    const root = TS.test(ts) ? this.#workspace.message(channel, ts) : undefined;
    if (!root || root.thread !== null) throw new Refusal("thread_not_found");
    return ts;
  }

  #text({ text = "", parse, link_names }: Fields): string {
    if (text.trim() === "") throw new Refusal("no_text");
    if (text.length > MAX_LENGTH) throw new Refusal("msg_too_long");
    if (text.length > ADVISED_LENGTH) this.complaints.push(`a message of ${text.length} characters`);
    const linked = (parse === "full" || link_names === "true") && /@(channel|here|everyone)\b/.test(text);
    if (linked || /<!(channel|here|everyone|subteam)/.test(text)) this.complaints.push("everybody was called");
    return text;
  }

  #reaction({ channel = "", timestamp = "", name = "" }: Fields): Set<string> {
    const message = this.#workspace.message(channel, timestamp);
    if (!message) throw new Refusal("message_not_found");
    if (!/^[\w+-]+$/.test(name)) throw new Refusal("invalid_name");
    const users = message.reactions.get(name) ?? new Set();
    message.reactions.set(name, users);
    return users;
  }

  #upload(id: string, body: Buffer, response: ServerResponse): void {
    const file = this.#workspace.files.get(id);
    if (!file || file.length !== body.length) return void response.writeHead(400).end("length mismatch");
    file.data = body;
    response.writeHead(200).end(`OK - ${body.length}`);
  }

  /** Whoever shows no token is asked to log in, politely and with 200. */
  #file(id: string, request: IncomingMessage, response: ServerResponse): void {
    const file = this.#workspace.files.get(id);
    const isKnown = request.headers.authorization === `Bearer ${this.#credentials.botToken}`;
    if (!isKnown || !file?.data) return void response.writeHead(200, { "content-type": "text/html" }).end("<html>Sign in</html>");
    response.writeHead(200, { "content-type": file.mediaType }).end(file.data);
  }
}

function fieldsOf(request: IncomingMessage, body: Buffer): Fields {
  if (request.headers["content-type"]?.startsWith("application/json")) return JSON.parse(body.toString());
  return Object.fromEntries(new URLSearchParams(body.toString()));
}

function send(response: ServerResponse, answer: Answer): void {
  response.writeHead(200, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(answer));
}
