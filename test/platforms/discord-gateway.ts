import { randomUUID } from "node:crypto";
import type { IncomingMessage, Server } from "node:http";
import { type RawData, type WebSocket, WebSocketServer } from "ws";

const GUILDS = 1 << 0;
const GUILD_MESSAGES = 1 << 9;
const DIRECT_MESSAGES = 1 << 12;
export const MESSAGE_CONTENT = 1 << 15;
const PATIENCE_MS = 5_000;
const ALL_INTENTS = (1 << 26) - 1;

interface Event {
  readonly s: number;
  readonly t: string;
  readonly d: unknown;
}

interface Session {
  readonly id: string;
  readonly intents: number;
  seq: number;
  /** What the client has not said to have: a heartbeat says up to where it has everything. */
  events: Event[];
  forgotten: number;
  socket: WebSocket | null;
}

export interface GatewayWorld {
  readonly token: () => string;
  readonly complain: (words: string) => void;
  readonly bot: { readonly id: string; readonly name: string };
  /** What a new session is told of at once, besides READY. */
  readonly guilds: () => readonly ({ readonly id: string } & Record<string, unknown>)[];
}

/** Discord's gateway: HELLO, IDENTIFY, HEARTBEAT, RESUME with what was missed, and its codes for those who do it wrong. */
export class DiscordGateway {
  readonly #world: GatewayWorld;
  readonly #sockets = new WebSocketServer({ noServer: true });
  readonly #sessions = new Map<string, Session>();
  #base = "";
  heartbeatMs = 41_250;
  isDeaf = false;
  allowsContent = true;
  isResumeAddressDead = false;
  /** Somebody wants a socket, and has none yet. */
  onConnecting: () => void = () => {};
  identified = 0;
  resumed = 0;
  heartbeats = 0;

  constructor(server: Server, world: GatewayWorld) {
    this.#world = world;
    server.on("upgrade", (request, socket, head) => {
      const path = new URL(request.url ?? "/", "http://x").pathname;
      if (path === "/resume" && this.isResumeAddressDead) return void socket.destroy();
      if (path !== "/resume" && path !== "/gateway") return void socket.destroy();
      this.onConnecting();
      this.#sockets.handleUpgrade(request, socket, head, (open) => this.#greet(open, request));
    });
  }

  set base(url: string) {
    this.#base = url.replace(/^http/, "ws");
  }

  get url(): string {
    return `${this.#base}/gateway`;
  }

  get isConnected(): boolean {
    return [...this.#sessions.values()].some(({ socket }) => socket !== null);
  }

  /** To every session that asked for it. */
  dispatch(t: string, isPrivate: boolean, dataFor: (canRead: boolean) => unknown): void {
    for (const session of this.#sessions.values()) {
      if ((session.intents & (isPrivate ? DIRECT_MESSAGES : GUILD_MESSAGES)) === 0) continue;
      this.#tell(session, t, dataFor((session.intents & MESSAGE_CONTENT) !== 0));
    }
  }

  /** As when a server of theirs dies. */
  cut(): void {
    for (const socket of this.#sockets.clients) socket.terminate();
  }

  /** As they do now and then: please come again. */
  askToReconnect(): void {
    for (const { socket } of this.#sessions.values()) socket?.send(JSON.stringify({ op: 7, d: null, s: null, t: null }));
  }

  forgetSessions(): void {
    this.#sessions.clear();
  }

  close(): void {
    this.cut();
    this.#sockets.close();
  }

  #greet(socket: WebSocket, request: IncomingMessage): void {
    const query = new URL(request.url ?? "/", "http://x").searchParams;
    if (query.get("v") !== "10" || query.get("encoding") !== "json") return void socket.close(4012, "Invalid API version");
    const of: { session: Session | null; isLate: NodeJS.Timeout | undefined } = { session: null, isLate: undefined };
    const alive = (): void => {
      clearTimeout(of.isLate);
      of.isLate = setTimeout(() => socket.close(4009, "Session timed out"), this.heartbeatMs * 2 + PATIENCE_MS);
    };
    socket.on("message", (data: RawData) => {
      const { op, d } = JSON.parse(data.toString()) as { op: number; d: never };
      if (op === 1) return this.#heartbeat(socket, of.session, d, alive);
      if (op === 2) of.session = of.session ? this.#refuse(socket, 4005, "identified twice") : this.#identify(socket, d);
      else if (op === 6) of.session = of.session ? this.#refuse(socket, 4005, "resumed twice") : this.#resume(socket, d);
      else this.#refuse(socket, of.session ? 4001 : 4003, `sent opcode ${op}`);
    });
    socket.on("close", (code) => {
      clearTimeout(of.isLate);
      if (of.session?.socket !== socket) return;
      of.session.socket = null;
      // Who says goodbye like this does not come back.
      if (code === 1000 || code === 1001) this.#sessions.delete(of.session.id);
    });
    socket.on("error", () => {});
    alive();
    socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: this.heartbeatMs }, s: null, t: null }));
  }

  #heartbeat(socket: WebSocket, session: Session | null, seq: number | null, alive: () => void): void {
    this.heartbeats++;
    if (this.isDeaf) return;
    if (session && seq !== null) {
      if (seq > session.seq) this.#refuse(socket, 4007, "acknowledged what was never sent");
      session.events = session.events.filter(({ s }) => s > seq);
      session.forgotten = Math.max(session.forgotten, seq);
    }
    alive();
    socket.send(JSON.stringify({ op: 11, d: null, s: null, t: null }));
  }

  #identify(socket: WebSocket, d: { token: string; intents: number; properties?: { os?: string } }): Session | null {
    if (d.token !== this.#world.token()) return this.#refuse(socket, 4004, null);
    if ((d.intents & ~ALL_INTENTS) !== 0 || !d.properties?.os) return this.#refuse(socket, 4013, "invalid intents or properties");
    if ((d.intents & MESSAGE_CONTENT) !== 0 && !this.allowsContent) return this.#refuse(socket, 4014, null);
    this.identified++;
    const session: Session = { id: randomUUID().replaceAll("-", ""), intents: d.intents, seq: 0, events: [], forgotten: 0, socket };
    this.#sessions.set(session.id, session);
    const { id, name } = this.#world.bot;
    const guilds = this.#world.guilds();
    this.#tell(session, "READY", {
      v: 10,
      user: { id, username: name, discriminator: "0", bot: true },
      guilds: guilds.map((guild) => ({ id: guild.id, unavailable: true })),
      session_id: session.id,
      resume_gateway_url: `${this.#base}/resume`,
      application: { id, flags: 0 },
      shard: [0, 1],
    });
    if ((d.intents & GUILDS) !== 0) for (const guild of guilds) this.#tell(session, "GUILD_CREATE", guild);
    return session;
  }

  #resume(socket: WebSocket, d: { token: string; session_id: string; seq: number }): Session | null {
    if (d.token !== this.#world.token()) return this.#refuse(socket, 4004, null);
    const session = this.#sessions.get(d.session_id);
    if (!session || d.seq < session.forgotten) {
      if (session) this.#world.complain("resumed from before what it had acknowledged");
      socket.send(JSON.stringify({ op: 9, d: false, s: null, t: null }));
      return null;
    }
    if (d.seq > session.seq) return this.#refuse(socket, 4007, "resumed from what was never sent");
    this.resumed++;
    const old = session.socket;
    session.socket = socket;
    old?.close(4000, "resumed elsewhere");
    for (const event of session.events) if (event.s > d.seq) socket.send(JSON.stringify({ op: 0, ...event }));
    this.#tell(session, "RESUMED", {});
    return session;
  }

  #tell(session: Session, t: string, d: unknown): void {
    const event = { s: ++session.seq, t, d };
    // That something was resumed is no news the next time.
    if (t !== "RESUMED") session.events.push(event);
    session.socket?.send(JSON.stringify({ op: 0, ...event }));
  }

  #refuse(socket: WebSocket, code: number, complaint: string | null): null {
    if (complaint !== null) this.#world.complain(`gateway ${code}: ${complaint}`);
    socket.close(code);
    return null;
  }
}
