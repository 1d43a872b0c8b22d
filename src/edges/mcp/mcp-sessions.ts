import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { Caller } from "../../kernel/caller.ts";
import { asFailure, Failure } from "../../kernel/failure.ts";
import { mcpServer, type Subscriptions } from "./mcp-server.ts";
import { Pace } from "./pace.ts";
import type { McpParts, Tool } from "./tool.ts";
import { followUpdates } from "./updates.ts";

export interface SessionLimits {
  readonly total: number;
  readonly perCaller: number;
  /** A session that nobody uses for so long is forgotten; its client begins a new one. */
  readonly idleMs: number;
}

const LIMITS: SessionLimits = { total: 2_000, perCaller: 100, idleMs: 30 * 60_000 };
const KEEP_ALIVE_MS = 15_000;

interface Session {
  readonly caller: Caller;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly subscriptions: Subscriptions;
  /** Aborts with the session: a stream that it ends looks to the server like one that was read to its end. */
  readonly over: AbortSignal;
  /** The last event it was told of, or that was none of its business. */
  seen: number;
  usedAt: number;
  streaming: number;
}

/**
 * Connections of clients that open a session (protocol revisions before 2026). A session belongs to the identity that opened it: for
 * anybody else it does not exist.
 */
export class McpSessions {
  readonly #parts: McpParts;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #limits: SessionLimits;
  readonly #sessions = new Map<string, Session>();

  constructor(parts: McpParts, tools: ReadonlyMap<string, Tool>, limits: Partial<SessionLimits> = {}) {
    this.#parts = parts;
    this.#tools = tools;
    this.#limits = { ...LIMITS, ...limits };
  }

  get count(): number {
    return this.#sessions.size;
  }

  async answer(request: Request, caller: Caller): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    if (id === null) return this.#open(request, caller);
    const session = this.#sessions.get(id);
    if (!session || !isSame(session.caller, caller)) return noSession();
    session.usedAt = performance.now();
    const response = await session.transport.handleRequest(request);
    if (request.method !== "GET" || !response.ok) return response;
    const pace = new Pace();
    this.#follow(session, AbortSignal.any([request.signal, session.over]), pace);
    return pace.counted(response);
  }

  async #open(request: Request, caller: Caller): Promise<Response> {
    this.#makeRoom(caller);
    const seen = await this.#parts.store.ledger.horizon();
    const subscriptions: Subscriptions = new Map();
    const over = new AbortController();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => this.#parts.newId() + crypto.randomUUID(),
      keepAliveMs: KEEP_ALIVE_MS,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { caller, transport, subscriptions, over: over.signal, seen, usedAt: performance.now(), streaming: 0 });
      },
    });
    const server = mcpServer(this.#parts, this.#tools, caller, subscriptions);
    await server.connect(transport);
    server.onclose = () => {
      over.abort();
      if (transport.sessionId !== undefined) this.#sessions.delete(transport.sessionId);
    };
    const response = await transport.handleRequest(request);
    // Whatever was no beginning of a session has been refused, and leaves nothing behind.
    if (transport.sessionId === undefined) await server.close();
    return response;
  }

  /** Notifications travel on the stream that the client holds open; from one stream to the next nothing is lost. */
  #follow(session: Session, signal: AbortSignal, pace: Pace): void {
    session.streaming++;
    const { caller, subscriptions, transport, seen: from } = session;
    const following = followUpdates(this.#parts, {
      caller,
      from,
      signal,
      pace,
      wants: (uri) => subscriptions.has(uri),
      tell: (uri) =>
        transport.send({
          jsonrpc: "2.0",
          method: "notifications/resources/updated",
          params: { uri: subscriptions.get(uri) ?? uri },
        }),
      told: (seq) => {
        session.seen = seq;
      },
    });
    following
      .catch((error: unknown) => this.#parts.log.warn("updates stopped", { error: asFailure(error).message }))
      .finally(() => {
        session.streaming--;
        session.usedAt = performance.now();
      });
  }

  #makeRoom(caller: Caller): void {
    const now = performance.now();
    const idle = ([, session]: [string, Session]): boolean => session.streaming === 0;
    for (const [id, session] of this.#sessions)
      if (session.streaming === 0 && now - session.usedAt > this.#limits.idleMs) this.#drop(id, session);
    const own = [...this.#sessions].filter(([, session]) => isSame(session.caller, caller));
    if (own.length >= this.#limits.perCaller) this.#dropOldest(own.filter(idle));
    if (this.#sessions.size >= this.#limits.total) this.#dropOldest([...this.#sessions].filter(idle));
  }

  #dropOldest(idle: readonly [string, Session][]): void {
    const [oldest] = idle.toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    if (!oldest) throw new Failure("request.busy", "too many MCP sessions are open", { hint: "Close some of them, then try again." });
    this.#drop(...oldest);
  }

  #drop(id: string, session: Session): void {
    this.#sessions.delete(id);
    void session.transport.close().catch(() => {});
  }
}

function isSame(one: Caller, other: Caller): boolean {
  return one.kind === other.kind && one.name === other.name;
}

/** As the protocol wants it: the client then begins a new session. */
function noSession(): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32_001, message: "Session not found" }, id: null }, { status: 404 });
}
