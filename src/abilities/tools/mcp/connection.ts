import type { CallToolResult, Client, Transport } from "@modelcontextprotocol/client";
import { argumentProblem } from "../../../deciders/policy/argument-problem.ts";
import { Failure } from "../../../kernel/failure.ts";
import { type ListedTool, type ToolList, toolListOf } from "../../../records/mcp/tool-list.ts";
import { boundedFetch, withoutPassword } from "./bounded-fetch.ts";
import { ChildTransport } from "./child-transport.ts";
import type { ServerPlace } from "./server-place.ts";
import { namesOf } from "./tool-names.ts";

const TOOLS_AT_MOST = 256;
const LIST_AT_MOST = 1_000_000;
const PROBE_MS = 3_000;
const LIST_MS = 10_000;
/** Where a signal decides. */
const NEVER_MS = 24 * 3_600_000;
const GOODBYE_MS = 1_000;
const PROGRESS_AT_MOST = 500;

/** One live connection to a server. It ends once, and is never used again. */
export class Connection {
  readonly #place: ServerPlace;
  readonly #client: Client;
  readonly #transport: Transport;
  #list: Promise<ToolList> | undefined;
  #listedAt = 0;
  #isClosing = false;

  private constructor(place: ServerPlace, client: Client, transport: Transport) {
    this.#place = place;
    this.#client = client;
    this.#transport = transport;
  }

  /** `ended`: it is gone, though nobody has closed it. */
  static async open(place: ServerPlace, signal: AbortSignal, ended: () => void): Promise<Connection> {
    try {
      return await Connection.#openAs(place, "auto", signal, ended);
    } catch (error) {
      // Some servers of before cannot bear the question which version they speak, and end.
      if (place.kind !== "child" || !(error instanceof EndedWhileAsked)) throw error;
      return Connection.#openAs(place, "legacy", signal, ended);
    }
  }

  static async #openAs(place: ServerPlace, mode: "auto" | "legacy", signal: AbortSignal, ended: () => void): Promise<Connection> {
    const sdk = await import("@modelcontextprotocol/client");
    const transport = place.kind === "child" ? new ChildTransport(place, sdk.deserializeMessage) : httpTransport(sdk, place);
    const client = new sdk.Client(
      { name: "guildhall", version: place.version },
      {
        capabilities: {},
        versionNegotiation: { mode, probe: { timeoutMs: PROBE_MS } },
        // What a server says of its answers is no reason to hold one back, and its schemas are not ours to run.
        jsonSchemaValidator: { getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }) },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => connection.#forget() } },
        inputRequired: { autoFulfill: false },
      },
    );
    const connection = new Connection(place, client, transport);
    const fate = (): string | null => (transport instanceof ChildTransport ? transport.fate : null);
    try {
      await Promise.race([client.connect(transport, { timeout: NEVER_MS, signal }), aborted(signal)]);
      client.onclose = () => {
        if (!connection.#isClosing) ended();
      };
      if (fate() !== null) throw new Failure("tool.unavailable", fate() as string);
      return connection;
    } catch (error) {
      const why = fate();
      await connection.close();
      if (why !== null && mode === "auto" && transport instanceof ChildTransport && transport.pid !== null)
        throw new EndedWhileAsked("tool.unavailable", why);
      throw new Failure("tool.unavailable", why ?? wordsOf(error), { cause: error });
    }
  }

  /** Why it is gone, as far as its process says. */
  get fate(): string | null {
    return this.#transport instanceof ChildTransport ? this.#transport.fate : null;
  }

  /** What it offers now: asked anew when it said that something changed, or when the last answer is older than this. */
  list(now: number, maxAgeMs = Number.POSITIVE_INFINITY): Promise<ToolList> {
    if (this.#list === undefined || now - this.#listedAt >= maxAgeMs) {
      this.#listedAt = now;
      const asked = this.#ask();
      this.#list = asked;
      asked.catch(() => {
        if (this.#list === asked) this.#list = undefined;
      });
    }
    return this.#list;
  }

  call(tool: string, args: unknown, signal: AbortSignal, timeoutMs: number, progress: (text: string) => void): Promise<CallToolResult> {
    return this.#client.callTool(
      { name: tool, arguments: args as Record<string, unknown> },
      {
        signal,
        timeout: timeoutMs,
        onprogress: ({ message, progress: done, total }) =>
          progress((message ?? `${done}${total === undefined ? "" : ` of ${total}`}`).slice(0, PROGRESS_AT_MOST)),
      },
    ) as Promise<CallToolResult>;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    if ("terminateSession" in this.#transport) {
      const farewell = (this.#transport.terminateSession as () => Promise<void>)().catch(() => {});
      await Promise.race([farewell, new Promise((resolve) => setTimeout(resolve, GOODBYE_MS).unref())]);
    }
    // The transport too: where connecting failed, the client knows of none.
    await this.#client.close().catch(() => {});
    await this.#transport.close().catch(() => {});
  }

  #forget(): void {
    this.#list = undefined;
  }

  async #ask(): Promise<ToolList> {
    const { tools } = await this.#client.listTools(undefined, { cacheMode: "bypass", timeout: LIST_MS, maxTotalTimeout: LIST_MS });
    if (tools.length > TOOLS_AT_MOST) throw refused(this.#place.server, `it offers ${tools.length}, more than ${TOOLS_AT_MOST}`);
    for (const tool of tools) {
      const problem = argumentProblem(tool.inputSchema)?.replace("the arguments", "its schema");
      if (problem !== undefined) throw refused(this.#place.server, `${JSON.stringify(tool.name.slice(0, 100))}: ${problem}`);
    }
    const list = toolListOf(tools as unknown as readonly ListedTool[]);
    if (list.text.length > LIST_AT_MOST) throw refused(this.#place.server, "what it says of them is more than 1 MB");
    namesOf(
      this.#place.server,
      list.tools.map(({ name }) => name),
    );
    return list;
  }
}

/** Rejects when the signal says so; the SDK asks it only between its own steps. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

class EndedWhileAsked extends Failure {}

function httpTransport(sdk: typeof import("@modelcontextprotocol/client"), place: ServerPlace & { kind: "http" }): Transport {
  const { url, headers } = withoutPassword(place.url);
  return new sdk.StreamableHTTPClientTransport(url, { fetch: boundedFetch(place.headers, headers) });
}

function refused(server: string, why: string): Failure {
  return new Failure("tool.unavailable", `the tools of the MCP server ${server} are not loaded: ${why}`);
}

/** What went wrong, in the words of whoever knows. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error).slice(0, 300);
  const { cause } = error;
  const deeper = cause instanceof Error && cause.message !== "" && !error.message.includes(cause.message) ? ` (${cause.message})` : "";
  return `${error.message}${deeper}`.slice(0, 300);
}
