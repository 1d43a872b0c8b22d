import { type JSONRPCMessage, type JSONRPCRequest, SdkHttpError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** What a failure to send means for the message. */
export type SendProblem =
  /** It was never dealt with: the session, the token or the daemon is gone. Connect again, then send it again. */
  | { readonly kind: "not-taken" }
  /** Nobody knows whether it was dealt with. */
  | { readonly kind: "unknown" }
  | { readonly kind: "refused"; readonly message: string };

const NEVER_REACHED = new Set(["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "ENETUNREACH"]);
const NO_LONGER_KNOWN = new Set([401, 404]);

/** One connection to a daemon's `/mcp`; it ends with the daemon or the session. */
export class McpUpstream {
  readonly #transport: StreamableHTTPClientTransport;
  readonly #waiting = new Map<string, (message: JSONRPCMessage) => void>();
  #ended = false;

  constructor(url: string, headers: Readonly<Record<string, string>>, onMessage: (message: JSONRPCMessage) => void, onLost: () => void) {
    this.#transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { ...headers } },
      // Whether there is anything to reconnect to is decided here.
      reconnectionOptions: { initialReconnectionDelay: 0, maxReconnectionDelay: 0, reconnectionDelayGrowFactor: 1, maxRetries: 0 },
    });
    this.#transport.onmessage = (message) => {
      const own = "id" in message && typeof message.id === "string" ? this.#waiting.get(message.id) : undefined;
      if (own) own(message);
      else onMessage(message);
    };
    this.#transport.onerror = (error) => {
      if (/^Maximum reconnection attempts|^Failed to open SSE stream/.test(error.message) && !this.#ended) this.#reopen(onLost);
    };
  }

  start(): Promise<void> {
    return this.#transport.start();
  }

  /** Resolves when the message is taken over; answers come by themselves. */
  send(message: JSONRPCMessage, signal?: AbortSignal, onEnd?: () => void): Promise<void> {
    return this.#transport.send(message, {
      ...(signal === undefined ? {} : { requestSignal: signal }),
      ...(onEnd === undefined ? {} : { onRequestStreamEnd: onEnd }),
    });
  }

  /** A request of our own, whose answer is nobody else's. */
  async ask(request: JSONRPCRequest): Promise<JSONRPCMessage> {
    const id = String(request.id);
    const answer = new Promise<JSONRPCMessage>((resolve, reject) => {
      this.#waiting.set(id, resolve);
      this.send(request, undefined, () => reject(new Error("the daemon went away"))).catch(reject);
    });
    return answer.finally(() => this.#waiting.delete(id));
  }

  useVersion(version: string): void {
    this.#transport.setProtocolVersion(version);
  }

  async close(terminate: boolean): Promise<void> {
    this.#ended = true;
    if (terminate) await this.#transport.terminateSession().catch(() => {});
    await this.#transport.close().catch(() => {});
  }

  /** The stream for notifications has ended: a new one if the session still lives, else all of it is lost. */
  #reopen(onLost: () => void): void {
    setTimeout(() => {
      if (!this.#ended) this.#transport.resumeStream("").catch(onLost);
    }, 200).unref();
  }
}

export function problemOf(error: unknown): SendProblem {
  if (error instanceof SdkHttpError) {
    const { status, text } = error.data as { status?: number; text?: string | null };
    if (status !== undefined && NO_LONGER_KNOWN.has(status)) return { kind: "not-taken" };
    return { kind: "refused", message: saidBy(text) ?? error.message };
  }
  const code = ((error as Error).cause as { code?: string } | undefined)?.code;
  return code !== undefined && NEVER_REACHED.has(code) ? { kind: "not-taken" } : { kind: "unknown" };
}

/** What our own error answers say. */
function saidBy(text: string | null | undefined): string | undefined {
  try {
    const { error } = JSON.parse(text ?? "") as { error?: { code?: unknown; message?: string; hint?: string } };
    if (error?.message === undefined) return undefined;
    return `${error.message}${typeof error.code === "string" ? ` [${error.code}]` : ""}${error.hint === undefined ? "" : ` ${error.hint}`}`;
  } catch {
    return undefined;
  }
}
