import { createHmac, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Saying, Shown, StandIn, Trouble } from "./stand-in.ts";
import { Courier, Troubles } from "./webhook-courier.ts";
import { bodyOf, isUploadable, type KeptMedia, mediaProblem, refuse, sendJson, withoutMarkup } from "./whatsapp-graph.ts";

const DISPLAY_NUMBER = "15550783881";
const MAX_CHARACTERS = 4_096;
const MOST_TIMES = 1_000_000;

// biome-ignore lint/suspicious/noExplicitAny: what the channel under test sends
type Sent = any;

/** Meta's Graph API for one phone number, and the posts that Meta makes of what people write to it. */
export class WhatsAppStandIn implements StandIn {
  readonly platform = "whatsapp";
  readonly botId = DISPLAY_NUMBER;
  readonly phoneNumberId = `1065${randomBytes(4).readUInt32BE()}`;
  readonly token = `EAAJB${randomBytes(24).toString("hex")}`;
  readonly appSecret = randomBytes(16).toString("hex");
  readonly verifyToken = randomBytes(12).toString("hex");
  readonly accepted: Shown[] = [];
  readonly complaints: string[] = [];
  /** Marks of the bot, by the message they are on; removed ones are not there. */
  readonly marks = new Map<string, string>();
  /** Messages that were shown as read, with the bot typing. */
  readonly typingFor: string[] = [];
  readonly #courier = new Courier();
  readonly #troubles = new Troubles<Trouble>();
  readonly #media = new Map<string, KeptMedia>();
  /** Every message there is, of people and of the bot. */
  readonly #texts = new Map<string, string>();
  /** Chats whose people have written within a day. */
  readonly #open = new Set<string>();
  readonly #server = createServer((incoming, outgoing) => {
    this.#answer(incoming, outgoing).catch((error: unknown) => {
      this.complaints.push(`a request that cannot be read: ${String(error)}`);
      outgoing.destroy();
    });
  });
  #url = "";
  #count = 0;
  #closed = false;

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  get account(): Readonly<Record<string, unknown>> {
    return {
      token: this.token,
      phone_number_id: this.phoneNumberId,
      app_secret: this.appSecret,
      verify_token: this.verifyToken,
      api_url: this.#url,
    };
  }

  attach(daemonUrl: string): void {
    void this.#subscribe(daemonUrl);
  }

  /** Meta posts nothing to an address that has not repeated its challenge. */
  async #subscribe(daemonUrl: string): Promise<void> {
    const challenge = String(1_000_000 + this.#count);
    const query = new URLSearchParams({ "hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": this.verifyToken });
    while (!this.#closed) {
      const answer = await fetch(`${daemonUrl}/hooks/whatsapp?${query}`).catch(() => undefined);
      if (answer?.status === 200 && (await answer.text()) === challenge) return this.#courier.attach(daemonUrl);
      await sleep(50);
    }
  }

  /** One file goes with one message; the words go with the first. */
  async say(text: string, how: Saying = {}): Promise<string> {
    const words = how.mentions ? `@${DISPLAY_NUMBER} ${text}` : text;
    if (how.quotes?.forwarded) return this.deliver({ type: "text", text: { body: how.quotes.text }, context: { forwarded: true } }, how);
    const context = this.#contextOf(how);
    const [first, ...others] = (how.files ?? []).map((file) => this.#sentAlong(file));
    const id = this.deliver({ ...(first ? captioned(first, words) : { type: "text", text: { body: words } }), ...context }, how);
    for (const file of others) this.deliver(file, how);
    return id;
  }

  #contextOf({ answers, quotes }: Saying): object {
    if (answers !== undefined) return { context: { from: DISPLAY_NUMBER, id: answers } };
    if (!quotes) return {};
    const known = [...this.#texts].find(([, text]) => text === quotes.text)?.[0];
    return { context: { from: "16505551234", id: known ?? this.#newId() } };
  }

  #sentAlong(file: KeptMedia): Record<string, unknown> & { readonly type: string } {
    const id = `media${++this.#count}`;
    this.#media.set(id, file);
    const kind = /^(image|audio|video)\//.exec(file.mediaType)?.[1] ?? "document";
    const about = { id, mime_type: file.mediaType, sha256: "x", ...(kind === "document" ? { filename: file.name } : {}) };
    return { type: kind, [kind]: kind === "audio" ? { ...about, voice: true } : about };
  }

  /** A message in Meta's own words, posted until it is taken. Answers its id. */
  deliver(message: Record<string, unknown>, { peer = "7", name = "Ada", group }: Saying = {}): string {
    const id = this.#newId();
    const text = message.text as { readonly body: string } | undefined;
    if (text) this.#texts.set(id, text.body);
    else this.#texts.set(id, "");
    this.#open.add(group ?? peer);
    const whole = { from: peer, id, timestamp: "1749416383", ...(group === undefined ? {} : { group_id: group }), ...message };
    const value = { contacts: [{ profile: { name }, wa_id: peer }], messages: [whole] };
    this.#courier.add(() => this.post(this.postOf(value)));
    return id;
  }

  /** A whole post about this number, or another one. */
  postOf(value: object, phoneNumberId = this.phoneNumberId): object {
    const metadata = { display_phone_number: DISPLAY_NUMBER, phone_number_id: phoneNumberId };
    const change = { value: { messaging_product: "whatsapp", metadata, ...value }, field: "messages" };
    return { object: "whatsapp_business_account", entry: [{ id: "102290129340398", changes: [change] }] };
  }

  /** Signs and posts, once. `signature`: instead of the right one; null: none. */
  post(body: unknown, how: { readonly signature?: string | null; readonly path?: string } = {}): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const signature = how.signature === undefined ? this.signatureOf(text) : how.signature;
    const headers = { "content-type": "application/json", ...(signature === null ? {} : { "x-hub-signature-256": signature }) };
    return fetch(`${this.#courier.target}${how.path ?? "/hooks/whatsapp"}`, { method: "POST", headers, body: text });
  }

  signatureOf(text: string): string {
    return `sha256=${createHmac("sha256", this.appSecret).update(text).digest("hex")}`;
  }

  shown(chat: string): readonly Shown[] {
    return this.accepted.filter((one) => one.chat === chat);
  }

  trouble(kind: Trouble, times = kind === "bad token" ? MOST_TIMES : 1, chat?: string): void {
    this.#troubles.set(kind, times, chat);
  }

  /** More than a day has gone by since somebody there has written. */
  closeWindow(chat: string): void {
    this.#open.delete(chat);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#courier.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #newId(): string {
    return `wamid.${Buffer.from(`message ${++this.#count}`).toString("base64")}`;
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(incoming.url ?? "", "http://here");
    const body = await bodyOf(incoming);
    if (incoming.headers.authorization !== `Bearer ${this.token}` || this.#troubles.isOn("bad token")) {
      if (!this.#troubles.isOn("bad token")) this.complaints.push("a request without our token");
      const given = incoming.headers.authorization?.slice(7) ?? "";
      return refuse(outgoing, 401, 190, `Malformed access token ${given}`);
    }
    if (pathname.startsWith("/content/")) return this.#sendContent(outgoing, pathname.slice(9));
    const [, version, ...path] = pathname.split("/");
    if (!/^v\d+\.\d$/.test(version ?? "")) return refuse(outgoing, 400, 2500, "Unknown path components");
    const route = `${incoming.method} ${path.map((part) => (part === this.phoneNumberId ? ":number" : part)).join("/")}`;
    if (route === "GET :number")
      return sendJson(outgoing, 200, { id: this.phoneNumberId, display_phone_number: "+1 555-078-3881", verified_name: "Guildhall" });
    if (route === "POST :number/media") return this.#upload(incoming, outgoing, body);
    if (route === "POST :number/messages") return this.#take(incoming, outgoing, body);
    const media = incoming.method === "GET" && path.length === 1 ? this.#media.get(path[0] ?? "") : undefined;
    if (media && searchParams.get("phone_number_id") === this.phoneNumberId)
      return sendJson(outgoing, 200, {
        messaging_product: "whatsapp",
        url: `${this.#url}/content/${path[0]}`,
        mime_type: media.mediaType,
        file_size: String(media.data.length),
        id: path[0],
      });
    refuse(outgoing, 400, 100, `Unsupported ${incoming.method} request. Object with ID '${path[0]}' does not exist`);
  }

  #sendContent(outgoing: ServerResponse, id: string): void {
    const media = this.#media.get(id);
    if (!media) return void outgoing.writeHead(404).end();
    outgoing.writeHead(200, { "content-type": media.mediaType }).end(media.data);
  }

  async #upload(incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer): Promise<void> {
    const headers = { "content-type": incoming.headers["content-type"] ?? "" };
    const form = await new Response(new Uint8Array(body), { headers }).formData();
    const file = form.get("file");
    if (form.get("messaging_product") !== "whatsapp" || !(file instanceof File))
      return this.#wrong(outgoing, "The parameter messaging_product and a file are required.");
    const media = { name: file.name, mediaType: String(form.get("type")), data: new Uint8Array(await file.arrayBuffer()) };
    if (file.type !== media.mediaType || !isUploadable(media)) return this.#wrong(outgoing, `Param file must not be ${media.mediaType}`);
    const id = `media${++this.#count}`;
    this.#media.set(id, media);
    sendJson(outgoing, 200, { id });
  }

  async #take(incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer): Promise<void> {
    const message: Sent = JSON.parse(body.toString());
    if (incoming.headers["content-type"] !== "application/json" || message.messaging_product !== "whatsapp")
      return this.#wrong(outgoing, "The parameter messaging_product is required.");
    if (message.status !== undefined) return this.#read(outgoing, message);
    const chat = String(message.to ?? message.recipient ?? "");
    if (message.recipient_type === "individual" && !(message.to === undefined ? /^[A-Z]{2}\.\w+$/.test(chat) : /^\d+$/.test(chat)))
      return this.#wrong(outgoing, "The parameter to is not a phone number.");
    if (!["individual", "group"].includes(message.recipient_type)) return this.#wrong(outgoing, "Param recipient_type is not valid.");
    const about: unknown = message.context?.message_id ?? message.reaction?.message_id;
    if (about !== undefined && !this.#texts.has(String(about))) return this.#wrong(outgoing, "Parameter value is not valid", 131_009);
    if (message.type === "reaction") return this.#react(outgoing, message);
    const problem = this.#problemOf(message);
    if (problem !== undefined) return this.#wrong(outgoing, problem);
    return this.#send(incoming, outgoing, chat, message);
  }

  async #send(incoming: IncomingMessage, outgoing: ServerResponse, chat: string, message: Sent): Promise<void> {
    const trouble = this.#troubles.next(chat);
    if (trouble === "cut") return void incoming.socket.destroy();
    if (trouble === "rate limit") return refuse(outgoing, 400, 130_429, "Rate limit hit");
    if (trouble === "server error") return refuse(outgoing, 500, 131_000, "Something went wrong");
    if (trouble === "gone") return refuse(outgoing, 400, 131_026, "Message undeliverable");
    if (!this.#open.has(chat))
      return refuse(outgoing, 400, 131_047, "Re-engagement message", "More than 24 hours have passed since the customer last replied.");
    const id = this.#newId();
    this.#texts.set(id, message.text?.body ?? "");
    this.accepted.push(this.#shownOf(id, chat, message));
    if (trouble === "lose answer") return void incoming.socket.destroy();
    sendJson(outgoing, 200, { messaging_product: "whatsapp", contacts: [{ input: chat, wa_id: chat }], messages: [{ id }] });
  }

  async #read(outgoing: ServerResponse, { status, message_id: id, typing_indicator: typing }: Sent): Promise<void> {
    if (status !== "read" || !this.#texts.has(id)) return this.#wrong(outgoing, "Parameter value is not valid", 131_009);
    if (typing?.type === "text") this.typingFor.push(id);
    sendJson(outgoing, 200, { success: true });
  }

  #react(outgoing: ServerResponse, { reaction }: Sent): void {
    if (reaction.emoji === "") this.marks.delete(reaction.message_id);
    else this.marks.set(reaction.message_id, reaction.emoji);
    sendJson(outgoing, 200, { messaging_product: "whatsapp", messages: [{ id: this.#newId() }] });
  }

  #problemOf(message: Sent): string | undefined {
    if (message.type === "text") {
      const body: unknown = message.text?.body;
      if (typeof body !== "string" || body === "") return "The parameter text['body'] is required.";
      return body.length > MAX_CHARACTERS ? "Param text['body'] must be at most 4096 characters long." : undefined;
    }
    const media = this.#media.get(message[message.type]?.id);
    return media ? mediaProblem(message.type, media) : `Param ${message.type} must name media that was uploaded.`;
  }

  /** What a channel that knows the rules never does. */
  #wrong(outgoing: ServerResponse, problem: string, code = 100): void {
    this.complaints.push(problem);
    refuse(outgoing, 400, code, "Invalid parameter", problem);
  }

  #shownOf(id: string, chat: string, message: Sent): Shown {
    const raw: string = message.text?.body ?? "";
    const media = this.#media.get(message[message.type]?.id);
    return {
      id,
      chat,
      topic: null,
      text: withoutMarkup(raw),
      raw,
      answers: message.context?.message_id ?? null,
      file: media ? { name: message.document?.filename ?? media.name, data: media.data } : null,
      edits: 0,
    };
  }
}

function captioned(message: Record<string, unknown> & { readonly type: string }, words: string): Record<string, unknown> {
  const { type } = message;
  return words === "" ? message : { ...message, [type]: { ...(message[type] as object), caption: words } };
}

export async function whatsappStandIn(): Promise<WhatsAppStandIn> {
  return new WhatsAppStandIn().start();
}
