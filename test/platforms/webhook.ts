import { randomBytes, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import type { Saying, Shown, StandIn, Trouble } from "./stand-in.ts";
import { Courier, Troubles } from "./webhook-courier.ts";

export interface WebhookStandIn extends StandIn {
  readonly secret: string;
  /** Signs and posts, once. */
  post(body: unknown, how?: Posting): Promise<Response>;
  /** Headers and bodies of what has come, also of what was refused. */
  readonly requests: readonly { readonly id: string; readonly body: Record<string, unknown> }[];
}

export interface Posting {
  readonly id?: string;
  readonly at?: Date;
  /** Another one than ours. */
  readonly secret?: string;
  readonly account?: string;
  /** Instead of what the library signs. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What is sent after it was signed. */
  readonly changed?: (body: string) => string;
}

const MOST_TIMES = 1_000_000;

/** A program of the operator's, written with the official library of Standard Webhooks: it checks every signature, and shows an id once. */
export async function webhookStandIn(): Promise<WebhookStandIn> {
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const courier = new Courier();
  const troubles = new Troubles<Trouble>();
  const accepted: Shown[] = [];
  const complaints: string[] = [];
  const requests: WebhookStandIn["requests"][number][] = [];
  const files = new Map<string, { readonly mediaType: string; readonly data: Uint8Array }>();

  const verified = (incoming: IncomingMessage, body: string, outgoing: ServerResponse): boolean => {
    try {
      new Webhook(secret).verify(body, incoming.headers as Record<string, string>);
      return true;
    } catch (error) {
      complaints.push(`a signature: ${String(error)}`);
      outgoing.writeHead(401).end();
      return false;
    }
  };
  const sendFile = (incoming: IncomingMessage, outgoing: ServerResponse, id: string): void => {
    try {
      // The library wants a body of JSON; that of a GET is empty.
      const { "webhook-id": webhookId, "webhook-timestamp": at, "webhook-signature": signature } = incoming.headers;
      const own = new Webhook(secret).sign(String(webhookId), new Date(Number(at) * 1_000), "");
      if (own !== signature || webhookId !== id) throw new Error("it does not fit");
    } catch (error) {
      complaints.push(`a signature of a request for a file: ${String(error)}`);
      return void outgoing.writeHead(401).end();
    }
    const file = files.get(id);
    if (!file) return void outgoing.writeHead(404).end();
    outgoing.writeHead(200, { "content-type": file.mediaType }).end(file.data);
  };
  const take = (incoming: IncomingMessage, outgoing: ServerResponse, text: string): void => {
    if (!verified(incoming, text, outgoing)) return;
    if (incoming.headers["content-type"] !== "application/json") complaints.push("what is posted is not JSON");
    const id = String(incoming.headers["webhook-id"]);
    const body = JSON.parse(text);
    requests.push({ id, body });
    if (body.id !== id) complaints.push("the body has another id than its post");
    const trouble = troubles.next(body.chat);
    if (trouble === "cut") return void incoming.socket.destroy();
    if (trouble === "rate limit") return void outgoing.writeHead(429, { "retry-after": "1" }).end();
    if (trouble === "server error") return void outgoing.writeHead(500).end();
    if (trouble === "bad token") return void outgoing.writeHead(401).end();
    if (trouble === "gone") return void outgoing.writeHead(410).end();
    if (!accepted.some((one) => one.id === id)) accepted.push(shownOf(id, body));
    if (trouble === "lose answer") return void incoming.socket.destroy();
    outgoing.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ id }));
  };
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const { pathname, searchParams } = new URL(incoming.url ?? "", "http://here");
      if (pathname !== "/replies") return void outgoing.writeHead(404).end();
      if (incoming.method === "GET") return sendFile(incoming, outgoing, searchParams.get("file") ?? "");
      take(incoming, outgoing, Buffer.concat(chunks).toString());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  const post = (body: unknown, how: Posting = {}): Promise<Response> => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const id = how.id ?? `msg_${randomUUID()}`;
    const at = how.at ?? new Date();
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
      "webhook-signature": new Webhook(how.secret ?? secret).sign(id, at, text),
      ...how.headers,
    };
    const path = how.account === undefined ? "webhook" : `webhook/${encodeURIComponent(how.account)}`;
    return fetch(`${courier.target}/hooks/${path}`, { method: "POST", headers, body: how.changed?.(text) ?? text });
  };
  let said = 0;
  const say = async (text: string, how: Saying = {}): Promise<string> => {
    const id = `w${++said}`;
    const peer = how.peer ?? "7";
    const along = (how.files ?? []).map(({ name, mediaType, data }, index) => {
      files.set(`${id}-${index}`, { mediaType, data });
      return { id: `${id}-${index}`, name, media_type: mediaType, bytes: data.length };
    });
    const body = {
      chat: how.group ?? peer,
      peer,
      text,
      chat_type: how.group === undefined ? "dm" : "group",
      message_id: id,
      mentions: how.mentions === true || how.answers !== undefined,
      ...(how.name === undefined ? {} : { name: how.name }),
      ...(how.topic === undefined ? {} : { topic: how.topic }),
      ...(how.quotes ? { quoted: { text: how.quotes.text, forwarded: how.quotes.forwarded ?? false } } : {}),
      ...(along.length > 0 ? { files: along } : {}),
    };
    courier.add(() => post(body, { id }));
    return id;
  };
  return {
    platform: "webhook",
    secret,
    account: { secret, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/replies` },
    botId: "guildhall",
    attach: (url) => courier.attach(url),
    say,
    post,
    requests,
    shown: (chat, topic) => accepted.filter((one) => one.chat === chat && one.topic === (topic ?? null)),
    accepted,
    complaints,
    trouble: (kind, times = kind === "bad token" ? MOST_TIMES : 1, chat) => troubles.set(kind, times, chat),
    close: async () => {
      courier.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

interface PostedReply {
  readonly chat: string;
  readonly topic: string | null;
  readonly text: string | null;
  readonly answers: string | null;
  readonly file: { readonly name: string; readonly data: string } | null;
}

function shownOf(id: string, { chat, topic, text, answers, file }: PostedReply): Shown {
  return {
    id,
    chat,
    topic,
    text: text ?? "",
    raw: text ?? "",
    answers,
    file: file && { name: file.name, data: new Uint8Array(Buffer.from(file.data, "base64")) },
    edits: 0,
  };
}
