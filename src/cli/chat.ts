import { randomUUID } from "node:crypto";
import { userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { AgentsClient } from "../client/agents.ts";
import type { ApiClient } from "../client/api-client.ts";
import { ClientError } from "../client/client-error.ts";
import { RunsClient } from "../client/runs.ts";
import { SessionsClient } from "../client/sessions.ts";
import { ERRORS, type ErrorCode } from "../contract/errors.ts";
import type { NewMessage, Run } from "../contract/wire.ts";
import { askOnTerminal } from "./ask-on-terminal.ts";
import { Approver } from "./chat-approvals.ts";
import { chatHistory } from "./chat-history.ts";
import { type AskPerson, type Speaker, talkAtTerminal } from "./chat-lines.ts";
import { ChatView } from "./chat-view.ts";
import { type Connection, connect } from "./connect.ts";
import { onInterrupt } from "./interrupts.ts";
import { type GlobalOptions, harmless, print, say, sayError } from "./terminal.ts";

export interface ChatOptions extends GlobalOptions {
  readonly agent?: string;
  readonly message?: string;
}

/** A daemon that goes away in the middle is looked for again this often; the message keeps its id, so it runs once all the same. */
const ATTEMPTS = 3;
const GONE: readonly string[] = ["daemon.not_running", "daemon.stopping"];
/** Long enough for a message to have been taken up. */
const WAITING_MS = 2_000;

interface Awaited {
  readonly client: ApiClient;
  readonly runId: string;
}

export async function chat(options: ChatOptions): Promise<number> {
  const talk = new Conversation(options);
  try {
    if (options.message !== undefined) return await talk.askOnce(options.message);
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
  readonly #awaited = new Set<Awaited>();
  /** The person does not want what is being answered. */
  #interrupted = false;

  constructor(options: ChatOptions) {
    this.#options = options;
  }

  async close(): Promise<void> {
    await this.#connection?.close();
    this.#connection = undefined;
  }

  /** One message. Ctrl-C stops its turn; pressed again, it leaves. */
  async askOnce(message: string): Promise<number> {
    const leave = (): never => process.exit(1);
    onInterrupt(() => {
      // Nothing was said yet.
      if (this.#awaited.size === 0) leave();
      this.interrupt().catch(leave);
    });
    return this.ask(message, process.stdin.isTTY === true ? askOnTerminal : null);
  }

  /** Line by line until the input ends. A refusal is told and does not end the conversation. */
  async readAndAsk(): Promise<number> {
    this.#connection = await connect(this.#options);
    if (process.stdin.isTTY === true) {
      const { client, isPrivate } = this.#connection;
      const through = isPrivate ? "a private daemon" : client.url;
      say(`Talking through ${through}. Ctrl-C stops an answer, Ctrl-D or /exit ends, /help shows what else you can type.`);
      this.#agent = await this.#whoAnswers(client);
      await sayWhoAnswers(client, this.#agent);
      const { homePath } = await import("../daemon/find-daemon.ts");
      const before = chatHistory(join(homePath(this.#options), "chat-history"));
      return talkAtTerminal({ input: process.stdin, output: process.stderr }, this, before);
    }
    let exit = 0;
    for await (const line of createInterface({ input: process.stdin })) if (line.trim() !== "") exit = await this.ask(line, null);
    return exit;
  }

  prompt(): string {
    return `${this.#agent ?? ""}> `;
  }

  async interrupt(): Promise<void> {
    this.#interrupted = true;
    for (const { client, runId } of this.#awaited)
      await new SessionsClient(client).stop(runId).catch((error: unknown) => {
        if (!(error instanceof ClientError) || error.code !== "run.over") throw error;
      });
  }

  async #whoAnswers(client: ApiClient): Promise<string | null> {
    if (this.#options.agent !== undefined) return this.#options.agent;
    return (await new SessionsClient(client).where(ownAddress())).agent;
  }

  async ask(text: string, askPerson: AskPerson | null): Promise<number> {
    this.#interrupted = false;
    if (text.trim() === "") throw new ClientError("usage.wrong", "the message is empty");
    const message: NewMessage = {
      id: randomUUID(),
      ...ownAddress(),
      text,
      ...(this.#options.agent === undefined ? {} : { agent: this.#options.agent }),
    };
    for (let attempt = 1; ; attempt++) {
      try {
        const run = await this.#exchange(message, askPerson);
        this.#agent = run.agent;
        return this.#report(run);
      } catch (error) {
        if (attempt === ATTEMPTS || !(error instanceof ClientError) || !GONE.includes(error.code)) throw error;
        await this.close();
      }
    }
  }

  async #exchange(message: NewMessage, askPerson: AskPerson | null): Promise<Run> {
    this.#connection ??= await connect(this.#options);
    const { client } = this.#connection;
    const awaited = { client, runId: (await client.send(message)).runId };
    const approver = new Approver(client, awaited.runId, askPerson);
    this.#awaited.add(awaited);
    const late = setTimeout(() => void this.#lookWhyItWaits(awaited, approver), WAITING_MS);
    try {
      return await this.#show(awaited, approver);
    } finally {
      clearTimeout(late);
      approver.close();
      this.#awaited.delete(awaited);
    }
  }

  /** Shows the answer as it comes where a person watches; elsewhere it is printed whole. */
  async #show({ client, runId }: Awaited, approver: Approver): Promise<Run> {
    const watched = process.stdout.isTTY === true && !this.#options.json;
    const told = process.stderr.isTTY === true && !this.#options.json;
    const view = new ChatView(watched ? process.stdout : NOWHERE, told ? process.stderr : NOWHERE);
    for await (const progress of client.follow(runId)) {
      if (progress.kind === "done") {
        view.end(progress.run.reply?.text ?? null);
        return progress.run;
      }
      view.see(progress);
      // Not waited for: the turn may be stopped, or answered by somebody else, while the person thinks.
      if (progress.kind === "asks") approver.ask(progress.approval).catch(failed);
    }
    throw new ClientError("daemon.not_running", "the answer broke off");
  }

  /** Whoever waits should know what for. */
  async #lookWhyItWaits({ client, runId }: Awaited, approver: Approver): Promise<void> {
    const run = await new SessionsClient(client).run(runId).catch(() => undefined);
    if (run?.status === "queued") return sayWhatIsBefore(client, run).catch(() => {});
    if (run?.status !== "waiting") return;
    if (await approver.askAll().catch(() => true)) return;
    say(`(${run.agent} does not answer now; the message waits for it. See \`guildhall agents list\`.)`);
  }

  #report(run: Run): number {
    if (this.#options.json) print(JSON.stringify(run));
    else if (run.reply && process.stdout.isTTY !== true) print(run.reply.text);
    // A command that was refused has its answer; the error is for the exit code.
    if (run.status === "completed") return run.error === null ? 0 : 1;
    const code = (run.error && Object.hasOwn(ERRORS, run.error.code) ? run.error.code : "internal.bug") as ErrorCode;
    if (code === "run.stopped" && this.#interrupted) say("(stopped)");
    else sayError(run.error?.message ?? `the run is ${run.status}`, code);
    return 1;
  }
}

const NOWHERE = { write: () => {} };

/** Of one conversation, one message is answered after the other. */
async function sayWhatIsBefore(client: ApiClient, { id, agent, sessionKey }: Run): Promise<void> {
  const { runs } = await new RunsClient(client).open(agent === null ? {} : { agent });
  const before = runs.find((run) => run.id !== id && run.sessionKey === sessionKey && run.status !== "queued");
  if (!before) return;
  const why = before.status === "waiting" ? "waits for an approval, see `guildhall approvals list`" : "is being answered";
  say(`(an earlier message of this conversation comes first; it ${why})`);
}

/** Newcomers should know what they talk to, the scripted demo above all. */
async function sayWhoAnswers(client: ApiClient, id: string | null): Promise<void> {
  const { agents } = await new AgentsClient(client).list();
  const agent = agents.find((each) => each.id === id);
  if (!agent) return;
  if (agent.problem !== null) return say(`${agent.id} cannot answer: ${harmless(agent.problem)}`);
  if (!agent.model.startsWith("offline/")) return say(`${agent.id} answers with ${harmless(agent.model)}.`);
  say(
    `${agent.id} answers with ${agent.model}: a script, no language model. For a real one put a key into <home>/.env` +
      " (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), or start Ollama or LM Studio on this machine; then start again.",
  );
}

function failed(error: unknown): void {
  sayError(error instanceof Error ? error.message : String(error), error instanceof ClientError ? error.code : "internal.bug");
}

/** The person at this keyboard. */
function ownAddress(): Pick<NewMessage, "platform" | "chat" | "peer" | "chat_type"> {
  const name = userInfo().username || "operator";
  return { platform: "terminal", chat: name, peer: name, chat_type: "dm" };
}
