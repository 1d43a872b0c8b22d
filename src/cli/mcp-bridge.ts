import {
  CLIENT_INFO_META_KEY,
  isInitializedNotification,
  isInitializeRequest,
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type JSONRPCRequest,
  PROTOCOL_VERSION_META_KEY,
} from "@modelcontextprotocol/client";
import type { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { type McpUpstream, problemOf } from "./mcp-upstream.ts";

/** Connects to a daemon, as whoever this process is. `urgent`: a client waits for it. */
export type Connect = (
  client: string,
  urgent: boolean,
  onMessage: (message: JSONRPCMessage) => void,
  onLost: () => void,
) => Promise<McpUpstream>;

const GONE = -32_000;
const AGAIN_MS = 500;
const ATTEMPTS = 3;
const UNKNOWN = "the daemon went away; what became of this is not known";

interface Pending {
  readonly request: JSONRPCRequest;
  readonly stop: AbortController;
  /** Who has taken it, once it was sent. */
  via: McpUpstream | undefined;
}

/**
 * Carries messages between the client on stdio and a daemon, both ways. When the daemon restarts it opens a new session as the client
 * opened the first one; what was under way then is answered with an error, never left without an answer.
 */
export class McpBridge {
  readonly #down: StdioServerTransport;
  readonly #connect: Connect;
  readonly #pending = new Map<string | number, Pending>();
  readonly #subscriptions = new Map<string, JSONRPCRequest>();
  #initialize: JSONRPCRequest | undefined;
  #answered = false;
  #initialized = false;
  #client: string | undefined;
  #up: Promise<McpUpstream> | undefined;
  #number = 0;
  #closed = false;
  #lookingAgain = false;

  constructor(down: StdioServerTransport, connect: Connect) {
    this.#down = down;
    this.#connect = connect;
  }

  async start(): Promise<void> {
    this.#down.onmessage = (message) => void this.#fromClient(message);
    await this.#down.start();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const up = await this.#up?.catch(() => undefined);
    await up?.close(true);
  }

  /** The daemon is away or has forgotten us. Looks for it again, without starting one unless somebody waits. */
  lost(): void {
    if (this.#closed || this.#lookingAgain) return;
    this.#lookingAgain = true;
    void this.#lookAgain();
  }

  async #lookAgain(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#reconnect(await this.#current(), false);
        break;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
    this.#lookingAgain = false;
  }

  #current(): Promise<McpUpstream | undefined> {
    return this.#up?.catch(() => undefined) ?? Promise.resolve(undefined);
  }

  async #fromClient(message: JSONRPCMessage): Promise<void> {
    this.#client ??= clientOf(message);
    if (isInitializeRequest(message)) this.#initialize = message as JSONRPCRequest;
    if (this.#cancelled(message)) return;
    const pending = isJSONRPCRequest(message) ? { request: message, stop: new AbortController(), via: undefined } : undefined;
    if (pending) this.#pending.set(pending.request.id, pending);
    try {
      await this.#forward(message, pending);
      if (isInitializedNotification(message)) this.#initialized = true;
    } catch (error) {
      if (pending) this.#fail(pending, (error as Error).message);
    }
  }

  async #forward(message: JSONRPCMessage, pending: Pending | undefined): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const up = await this.#upstream();
      try {
        if (pending) pending.via = up;
        return await up.send(message, pending?.stop.signal, () => pending && this.#fail(pending, UNKNOWN));
      } catch (error) {
        if (pending) pending.via = undefined;
        if (pending?.stop.signal.aborted) return;
        const problem = problemOf(error);
        if (problem.kind === "refused") throw new Error(problem.message);
        if (problem.kind === "unknown") this.lost();
        if (problem.kind === "unknown" || attempt === ATTEMPTS) throw new Error(UNKNOWN);
        await this.#reconnect(up, true);
      }
    }
  }

  #upstream(): Promise<McpUpstream> {
    return this.#up ?? this.#opening(true);
  }

  /** Once for all who found the same connection broken. */
  async #reconnect(broken: McpUpstream | undefined, urgent: boolean): Promise<void> {
    const current = await this.#current();
    if (current !== undefined && current !== broken) return;
    if (this.#up === undefined || current === broken) {
      const opening = this.#opening(urgent);
      void broken?.close(false);
      for (const pending of [...this.#pending.values()]) if (broken && pending.via === broken) this.#fail(pending, UNKNOWN);
      await opening;
    } else await this.#up;
  }

  /** Everybody waits for the same one; when it fails, the next to come tries again. */
  #opening(urgent: boolean): Promise<McpUpstream> {
    const opening = this.#open(urgent);
    this.#up = opening;
    opening.catch(() => {
      if (this.#up === opening) this.#up = undefined;
    });
    return opening;
  }

  async #open(urgent: boolean): Promise<McpUpstream> {
    let up: McpUpstream | undefined;
    up = await this.#connect(
      this.#client ?? "guest",
      urgent,
      (message) => this.#fromDaemon(message, up),
      () => this.lost(),
    );
    try {
      await this.#replay(up);
    } catch (error) {
      void up.close(false);
      throw error;
    }
    return up;
  }

  /** What the client has said at the beginning, said again in its place. */
  async #replay(up: McpUpstream): Promise<void> {
    if (!this.#initialize || !this.#answered) return;
    const answer = await up.ask(this.#again(this.#initialize));
    if (isJSONRPCResultResponse(answer)) up.useVersion((answer.result as { protocolVersion: string }).protocolVersion);
    if (this.#initialized) await up.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    for (const [uri, request] of this.#subscriptions) {
      await up.ask(this.#again(request));
      // It may have changed while nobody could tell.
      await this.#down.send({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } });
    }
  }

  #again(request: JSONRPCRequest): JSONRPCRequest {
    return { ...request, id: `guildhall-bridge-${++this.#number}` };
  }

  #fromDaemon(message: JSONRPCMessage, up: McpUpstream | undefined): void {
    if (isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) {
      const pending = message.id === undefined ? undefined : this.#pending.get(message.id);
      if (message.id !== undefined) this.#pending.delete(message.id);
      if (pending && isJSONRPCResultResponse(message)) this.#remember(pending.request, message.result, up);
    }
    if (!this.#closed) void this.#down.send(message).catch(() => {});
  }

  #remember(request: JSONRPCRequest, result: unknown, up: McpUpstream | undefined): void {
    const { uri } = (request.params ?? {}) as { uri?: string };
    if (request === this.#initialize) {
      this.#answered = true;
      up?.useVersion((result as { protocolVersion: string }).protocolVersion);
    }
    if (request.method === "resources/subscribe" && uri !== undefined) this.#subscriptions.set(uri, request);
    if (request.method === "resources/unsubscribe" && uri !== undefined) this.#subscriptions.delete(uri);
  }

  /** Newer clients cancel over HTTP by closing the request's connection; on stdio they say so. */
  #cancelled(message: JSONRPCMessage): boolean {
    if (!("method" in message) || message.method !== "notifications/cancelled") return false;
    const { requestId } = (message.params ?? {}) as { requestId?: string | number };
    const pending = requestId === undefined ? undefined : this.#pending.get(requestId);
    if (!pending || metaOf(pending.request)?.[PROTOCOL_VERSION_META_KEY] === undefined) return false;
    this.#pending.delete(pending.request.id);
    pending.stop.abort();
    return true;
  }

  #fail({ request }: Pending, message: string): void {
    if (!this.#pending.delete(request.id) || this.#closed) return;
    void this.#down.send({ jsonrpc: "2.0", id: request.id, error: { code: GONE, message: `guildhall: ${message}` } }).catch(() => {});
  }
}

function metaOf(message: JSONRPCMessage): Record<string, unknown> | undefined {
  return "params" in message ? (message.params?._meta as Record<string, unknown> | undefined) : undefined;
}

/** What the client calls itself, in either way it may say so. */
function clientOf(message: JSONRPCMessage): string {
  const said = isInitializeRequest(message)
    ? message.params.clientInfo
    : (metaOf(message)?.[CLIENT_INFO_META_KEY] as { name?: unknown } | undefined);
  return typeof said?.name === "string" && said.name !== "" ? said.name.slice(0, 200) : "guest";
}
