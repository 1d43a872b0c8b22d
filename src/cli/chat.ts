import { randomUUID } from "node:crypto";
import { userInfo } from "node:os";
import { createInterface } from "node:readline";
import type { ApiClient } from "../client/api-client.ts";
import { ClientError } from "../client/client-error.ts";
import { SessionsClient } from "../client/sessions.ts";
import { ERRORS, type ErrorCode } from "../contract/errors.ts";
import type { NewMessage, Run } from "../contract/wire.ts";
import { type Speaker, talkAtTerminal } from "./chat-lines.ts";
import { type Connection, connect } from "./connect.ts";
import { type GlobalOptions, harmless, print, say, sayError } from "./terminal.ts";

export interface ChatOptions extends GlobalOptions {
  readonly agent?: string;
  readonly message?: string;
}

/** A daemon that goes away in the middle is looked for again this often; the message keeps its id, so it runs once all the same. */
const ATTEMPTS = 3;
/** Long enough for a message to have been taken up. */
const WAITING_MS = 2_000;

export async function chat(options: ChatOptions): Promise<number> {
  const talk = new Conversation(options);
  try {
    if (options.message !== undefined) return await talk.ask(options.message);
    return await talk.readAndAsk();
  } finally {
    await talk.close();
  }
}

class Conversation implements Speaker {
  readonly #options: ChatOptions;
  #connection: Connection | undefined;
  /** Who has answered last, or will answer first. */
  #agent: string | null = null;
  /** What is being answered now: one, and a /stop beside it. */
  readonly #awaited = new Set<{ readonly client: ApiClient; readonly runId: string }>();

  constructor(options: ChatOptions) {
    this.#options = options;
  }

  async close(): Promise<void> {
    await this.#connection?.close();
    this.#connection = undefined;
  }

  /** Line by line until the input ends. A refusal is told and does not end the conversation. */
  async readAndAsk(): Promise<number> {
    this.#connection = await connect(this.#options);
    if (process.stdin.isTTY === true) {
      const through = this.#connection.isPrivate ? "a private daemon" : this.#connection.client.url;
      say(`Talking through ${through}. Ctrl-C stops an answer, Ctrl-D or /exit ends, /help shows what else you can type.`);
      this.#agent = await this.#whoAnswers();
      return talkAtTerminal({ input: process.stdin, output: process.stderr }, this);
    }
    let exit = 0;
    for await (const line of createInterface({ input: process.stdin })) if (line.trim() !== "") exit = await this.ask(line);
    return exit;
  }

  prompt(): string {
    return `${this.#agent ?? ""}> `;
  }

  async interrupt(): Promise<void> {
    for (const { client, runId } of this.#awaited)
      await new SessionsClient(client).stop(runId).catch((error: unknown) => {
        if (!(error instanceof ClientError) || error.code !== "run.over") throw error;
      });
  }

  async #whoAnswers(): Promise<string | null> {
    if (this.#options.agent !== undefined) return this.#options.agent;
    this.#connection ??= await connect(this.#options);
    return (await new SessionsClient(this.#connection.client).where(ownAddress())).agent;
  }

  async ask(text: string): Promise<number> {
    if (text.trim() === "") throw new ClientError("usage.wrong", "the message is empty");
    const message: NewMessage = {
      id: randomUUID(),
      ...ownAddress(),
      text,
      ...(this.#options.agent === undefined ? {} : { agent: this.#options.agent }),
    };
    for (let attempt = 1; ; attempt++) {
      try {
        const run = await this.#exchange(message);
        this.#agent = run.agent;
        return this.#report(run);
      } catch (error) {
        if (attempt === ATTEMPTS || !(error instanceof ClientError) || error.code !== "daemon.not_running") throw error;
        await this.close();
      }
    }
  }

  async #exchange(message: NewMessage): Promise<Run> {
    this.#connection ??= await connect(this.#options);
    const { client } = this.#connection;
    const awaited = { client, runId: (await client.send(message)).runId };
    this.#awaited.add(awaited);
    const late = setTimeout(() => void sayThatItWaits(awaited), WAITING_MS);
    try {
      return await this.#show(awaited);
    } finally {
      clearTimeout(late);
      this.#awaited.delete(awaited);
    }
  }

  /** Shows the text as it comes where a person watches; elsewhere the answer is printed whole. */
  async #show({ client, runId }: { readonly client: ApiClient; readonly runId: string }): Promise<Run> {
    const watched = process.stdout.isTTY === true && !this.#options.json;
    let shown = "";
    for await (const progress of client.follow(runId)) {
      if (progress.kind === "done") {
        if (watched && progress.run.reply) process.stdout.write(`${harmless(rest(progress.run.reply.text, shown))}\n`);
        else if (watched && shown !== "") process.stdout.write("\n");
        return progress.run;
      }
      if (progress.kind === "restart") {
        if (watched && shown !== "") say("\n(the answer starts again)");
        shown = "";
      } else if (watched && progress.kind === "text") {
        shown += progress.text;
        process.stdout.write(harmless(progress.text));
      }
    }
    throw new ClientError("daemon.not_running", "the answer broke off");
  }

  #report(run: Run): number {
    if (this.#options.json) print(JSON.stringify(run));
    else if (run.reply && process.stdout.isTTY !== true) print(run.reply.text);
    // A command that was refused has its answer; the error is for the exit code.
    if (run.status === "completed") return run.error === null ? 0 : 1;
    const code = (run.error && Object.hasOwn(ERRORS, run.error.code) ? run.error.code : "internal.bug") as ErrorCode;
    sayError(run.error?.message ?? `the run is ${run.status}`, code);
    return 1;
  }
}

/** Whoever waits for an agent that is paused should know what for. */
async function sayThatItWaits({ client, runId }: { readonly client: ApiClient; readonly runId: string }): Promise<void> {
  const run = await new SessionsClient(client).run(runId).catch(() => undefined);
  if (run?.status === "waiting") say(`(${run.agent} does not answer now; the message waits for it. See \`guildhall agents list\`.)`);
}

/** The person at this keyboard. */
function ownAddress(): Pick<NewMessage, "platform" | "chat" | "peer" | "chat_type"> {
  const name = userInfo().username || "operator";
  return { platform: "terminal", chat: name, peer: name, chat_type: "dm" };
}

/** What is still to be shown of a text of which the beginning was shown already. */
function rest(text: string, shown: string): string {
  return text.startsWith(shown) ? text.slice(shown.length) : `\n${text}`;
}
