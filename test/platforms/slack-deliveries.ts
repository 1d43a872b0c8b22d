import { createHmac, randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type WebSocket, WebSocketServer } from "ws";

/** One event on its way to the app, until the app has said that it has it. */
interface Delivery {
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  attempts: number;
}

export interface DeliveryOptions {
  /** How long the app has to say that it has it. */
  readonly ackMs: number;
  /** How long a connection that was told to leave is still served. */
  readonly leaveMs: number;
  readonly maxConnections: number;
}

/** What both ways have in common: an event comes again until it was acknowledged. Slack gives up after three times; this does not. */
export interface Deliveries {
  put(payload: Readonly<Record<string, unknown>>): void;
  /** How often each event was sent, by its id. */
  readonly attempts: ReadonlyMap<string, number>;
  readonly open: number;
  close(): void;
}

interface Connection {
  readonly socket: WebSocket;
  readonly sent: Map<string, Delivery>;
  /** Whatever was sent by it, acknowledged or not: an acknowledgement may be late. */
  readonly known: Set<string>;
  isLeaving: boolean;
}

/** Socket mode: tickets that open one connection each, envelopes, and disconnects. */
export class SocketDeliveries implements Deliveries {
  readonly attempts = new Map<string, number>();
  readonly complaints: string[] = [];
  readonly #options: DeliveryOptions;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #tickets = new Set<string>();
  readonly #connections = new Set<Connection>();
  readonly #waiting: Delivery[] = [];
  /** So many acknowledgements are taken as if they had never come. */
  ignoring = 0;
  /** How many connections there have been in all. */
  opened = 0;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  ticket(): string {
    const ticket = randomUUID();
    this.#tickets.add(ticket);
    return ticket;
  }

  get connected(): number {
    return this.#connections.size;
  }

  get open(): number {
    return this.#waiting.length + [...this.#connections].reduce((sum, { sent }) => sum + sent.size, 0);
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const ticket = new URL(request.url ?? "/", "http://localhost").searchParams.get("ticket") ?? "";
    if (!this.#tickets.delete(ticket)) return void socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    this.#server.handleUpgrade(request, socket, head, (accepted) => this.#welcome(accepted));
  }

  put(payload: Readonly<Record<string, unknown>>): void {
    this.#waiting.push({ id: randomUUID(), payload, attempts: 0 });
    this.#flush();
  }

  /** Slack recycles its servers: every connection is told to leave, and is served for a while. */
  tellToLeave(reason: string): void {
    for (const connection of this.#connections) {
      connection.socket.send(JSON.stringify({ type: "disconnect", reason, debug_info: { host: "applink" } }));
      connection.isLeaving = reason !== "warning";
      setTimeout(() => connection.socket.close(), this.#options.leaveMs).unref();
    }
  }

  /** Something that is no envelope. */
  sendRaw(frame: string): void {
    for (const { socket } of this.#connections) socket.send(frame);
  }

  /** The network goes away without a word. */
  cut(): void {
    for (const { socket } of this.#connections) socket.terminate();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #welcome(socket: WebSocket): void {
    const connection: Connection = { socket, sent: new Map(), known: new Set(), isLeaving: false };
    if (this.#connections.size >= this.#options.maxConnections) {
      socket.send(JSON.stringify({ type: "disconnect", reason: "too_many_websockets" }));
      return void socket.close();
    }
    this.opened++;
    this.#connections.add(connection);
    socket.on("message", (data) => this.#hear(connection, String(data)));
    socket.on("close", () => {
      this.#connections.delete(connection);
      this.#waiting.unshift(...connection.sent.values());
      connection.sent.clear();
      this.#flush();
    });
    const info = { host: "applink", approximate_connection_time: 18_060 };
    socket.send(
      JSON.stringify({ type: "hello", num_connections: this.#connections.size, debug_info: info, connection_info: { app_id: "A0APP" } }),
    );
    this.#flush();
  }

  #flush(): void {
    const connection = [...this.#connections].findLast(({ isLeaving }) => !isLeaving);
    if (!connection) return;
    for (const delivery of this.#waiting.splice(0)) this.#send(connection, delivery);
  }

  #send(connection: Connection, delivery: Delivery): void {
    connection.sent.set(delivery.id, delivery);
    connection.known.add(delivery.id);
    count(this.attempts, delivery);
    const retry = delivery.attempts > 0 ? { retry_attempt: delivery.attempts, retry_reason: "timeout" } : { retry_attempt: 0 };
    delivery.attempts++;
    const envelope = { envelope_id: delivery.id, type: "events_api", payload: delivery.payload, accepts_response_payload: false, ...retry };
    connection.socket.send(JSON.stringify(envelope));
    setTimeout(() => {
      if (!connection.sent.delete(delivery.id)) return;
      this.#waiting.push(delivery);
      this.#flush();
    }, this.#options.ackMs).unref();
  }

  #hear(connection: Connection, frame: string): void {
    const { envelope_id: id } = JSON.parse(frame) as { envelope_id?: string };
    if (this.ignoring > 0) {
      this.ignoring--;
      return;
    }
    if (id !== undefined) connection.sent.delete(id);
    if (id === undefined || !connection.known.has(id)) this.complaints.push("an envelope was acknowledged that was not sent here");
  }
}

/** The Events API over HTTP: signed posts, the challenge before the first of them, and again until they are answered with 2xx. */
export class PostDeliveries implements Deliveries {
  readonly attempts = new Map<string, number>();
  readonly complaints: string[] = [];
  readonly #options: DeliveryOptions;
  readonly #secret: string;
  readonly #waiting: Delivery[] = [];
  #url: string | undefined;
  #isWorking = false;
  #isClosed = false;

  constructor(options: DeliveryOptions, secret: string) {
    this.#options = options;
    this.#secret = secret;
  }

  get open(): number {
    return this.#waiting.length;
  }

  attach(url: string): void {
    this.#url = url;
    void this.#work();
  }

  put(payload: Readonly<Record<string, unknown>>): void {
    this.#waiting.push({ id: randomUUID(), payload, attempts: 0 });
    void this.#work();
  }

  close(): void {
    this.#isClosed = true;
  }

  /** As Slack does it, unless told otherwise. */
  async post(payload: unknown, how: { readonly at?: number; readonly secret?: string; readonly retry?: number } = {}): Promise<Response> {
    const body = JSON.stringify(payload);
    const at = Math.floor((how.at ?? Date.now()) / 1_000);
    const signature = `v0=${createHmac("sha256", how.secret ?? this.#secret)
      .update(`v0:${at}:${body}`)
      .digest("hex")}`;
    const retry = how.retry ? { "x-slack-retry-num": String(how.retry), "x-slack-retry-reason": "http_timeout" } : {};
    return fetch(this.#url ?? "http://127.0.0.1:9", {
      method: "POST",
      headers: { "content-type": "application/json", "x-slack-request-timestamp": String(at), "x-slack-signature": signature, ...retry },
      body,
      signal: AbortSignal.timeout(this.#options.ackMs),
    });
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    let verified: string | undefined;
    while (this.#url !== undefined && this.#waiting.length > 0 && !this.#isClosed) {
      if (verified !== this.#url && (await this.#isVerified())) verified = this.#url;
      const [delivery] = this.#waiting as [Delivery];
      if (verified === this.#url && (await this.#isTaken(delivery))) this.#waiting.splice(this.#waiting.indexOf(delivery), 1);
      else await sleep(50);
    }
    this.#isWorking = false;
  }

  async #isVerified(): Promise<boolean> {
    const challenge = randomUUID();
    try {
      const response = await this.post({ type: "url_verification", challenge, token: "" });
      if (((await response.json()) as { challenge?: string }).challenge === challenge) return true;
      this.complaints.push("the challenge was not answered");
    } catch {
      // Nobody is there yet.
    }
    return false;
  }

  async #isTaken(delivery: Delivery): Promise<boolean> {
    count(this.attempts, delivery);
    const retry = delivery.attempts++;
    try {
      const response = await this.post(delivery.payload, { retry });
      await response.arrayBuffer();
      return response.ok;
    } catch {
      return false;
    }
  }
}

function count(attempts: Map<string, number>, { payload }: Delivery): void {
  const id = String(payload.event_id);
  attempts.set(id, (attempts.get(id) ?? 0) + 1);
}
