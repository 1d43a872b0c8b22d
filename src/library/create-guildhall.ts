import { ClientError } from "../client/client-error.ts";
import { ERRORS, type ErrorCode } from "../contract/errors.ts";
import type { Run } from "../contract/wire.ts";
import { GuildhallClient } from "./guildhall-client.ts";
import { checkOptions, type GuildhallOptions } from "./options.ts";

export interface AskOptions {
  /** Who speaks. Everybody has conversations of their own; `program` by default. */
  readonly from?: string;
  /** Several conversations of the same speaker; each has its own notes, too. */
  readonly conversation?: string;
  /** Stops waiting, and stops the turn. */
  readonly signal?: AbortSignal;
}

/** A running daemon inside your program. */
export interface Guildhall {
  readonly url: string;
  readonly home: string;
  /** The operator's token: whoever has it may do everything. */
  readonly token: string;
  readonly agents: readonly string[];
  /** The API as functions, as the operator. */
  readonly client: GuildhallClient;
  /** The agent's answer. Rejects with a `GuildhallError`, which has a `code` and a `hint`. */
  ask(agent: string, text: string, options?: AskOptions): Promise<string>;
  /** The same, piece by piece as it comes. */
  stream(agent: string, text: string, options?: AskOptions): AsyncGenerator<string, void, void>;
  /** Finishes or hands over what runs, and lets go of everything. At most 10 s. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const PLATFORM = "library";

/** Starts the daemon inside this program: everything that `guildhall start` does, with your config and your tools. */
export async function createGuildhall(options: GuildhallOptions = {}): Promise<Guildhall> {
  checkOptions(options);
  const daemon = await started(options).catch((error: unknown) => {
    throw asGuildhallError(error);
  });
  const client = new GuildhallClient(daemon.url, daemon.operatorToken);
  return {
    url: daemon.url,
    home: daemon.home,
    token: daemon.operatorToken,
    agents: daemon.agents.map(({ id }) => id),
    client,
    ask: async (agent, text, asking) => {
      let reply = "";
      for await (const piece of turn(client, agent, text, asking)) if (typeof piece !== "string") reply = piece.reply?.text ?? "";
      return reply;
    },
    stream: async function* (agent, text, asking) {
      for await (const piece of turn(client, agent, text, asking)) if (typeof piece === "string") yield piece;
    },
    stop: () => daemon.stop(),
    [Symbol.asyncDispose]: () => daemon.stop(),
  };
}

async function started({ config, home, host, port, name, labels, tools = [], channels = [], log = "warn" }: GuildhallOptions) {
  const { startDaemon } = await import("../daemon/daemon.ts");
  const { ownTool } = await import("../daemon/own-tool.ts");
  const given = typeof config === "object" ? config : undefined;
  return startDaemon({
    home,
    host,
    ...(given ? { given } : { config: config as string | undefined }),
    port: port ?? (given ? (given.server?.port ?? 0) : undefined),
    name,
    labels,
    channels,
    tools: tools.map((tool) => ownTool(tool)),
    logLevel: log,
  });
}

async function* turn(
  client: GuildhallClient,
  agent: string,
  text: string,
  options: AskOptions = {},
): AsyncGenerator<string | Run, void, void> {
  const { from = "program", conversation, signal } = options;
  signal?.throwIfAborted();
  const peer = speaker(from, conversation);
  const { runId } = await client.api.send({ id: crypto.randomUUID(), platform: PLATFORM, chat: peer, chat_type: "dm", peer, agent, text });
  const stop = (): void => void client.sessions.stop(runId).catch(() => {});
  signal?.addEventListener("abort", stop, { once: true });
  // It may have been while the message was sent.
  if (signal?.aborted) stop();
  try {
    for await (const progress of client.api.follow(runId)) {
      if (progress.kind === "text") yield progress.text;
      if (progress.kind === "done") yield finished(progress.run);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** Another conversation is as private as the first: nobody else comes into it by its name, nor by calling themselves like it. */
function speaker(from: string, conversation: string | undefined): string {
  const part = (text: string): string => String(text).replace(/[%/]/g, encodeURIComponent);
  return conversation === undefined ? part(from) : `${part(from)}/${part(conversation)}`;
}

function finished(run: Run): Run {
  if (run.status === "completed") return run;
  const { code = "internal.bug", message = `the turn ended ${run.status}` } = run.error ?? {};
  throw new ClientError((Object.hasOwn(ERRORS, code) ? code : "internal.bug") as ErrorCode, message, { details: { run: run.id } });
}

/** A mistake in the config or the tools has a code too. */
function asGuildhallError(error: unknown): unknown {
  const { code, message, hint, details } = error as Partial<ClientError>;
  if (code === undefined || !Object.hasOwn(ERRORS, code)) return error;
  return new ClientError(code, message ?? "", { ...(hint ? { hint } : {}), details: details ?? {}, cause: error });
}
