import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { Failure } from "../../../kernel/failure.ts";
import { isStarted } from "../../../kernel/is-started.ts";
import { shown } from "../../../kernel/shown.ts";

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** One line that it wrote to its error stream. */
  heard(line: string): void;
}

type ReadMessage = (line: string) => JSONRPCMessage;

/** Of one message. */
const MESSAGE_AT_MOST = 8 * 1024 * 1024;
const TOO_LARGE = `it sent a message of more than ${MESSAGE_AT_MOST / 1024 / 1024} MB`;
const LAST_WORDS = 600;
const LINE_AT_MOST = 500;
/** How long it may take to end by itself, and then when it is told to. */
const LEAVE_MS = 700;
const NEWLINE = 10;

/**
 * A server as a child process that speaks on its standard streams. The SDK has such a transport too; that one starts the child in our own
 * process group, so that what the child starts outlives it, and adds variables of ours to those it is given.
 */
export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** By these two the SDK tells a child from a server on the network. */
  readonly stderr = null;
  pid: number | null = null;
  readonly #options: ChildOptions;
  readonly #read: ReadMessage;
  #child: ChildProcessWithoutNullStreams | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  /** One for all who wait for it. */
  #drained: Promise<unknown> | undefined;
  #pieces: Buffer[] = [];
  #size = 0;
  #lastWords = "";
  #fate: string | null = null;

  constructor(options: ChildOptions, read: ReadMessage) {
    this.#options = options;
    this.#read = read;
  }

  /** Why it is gone, in words; null while it lives. */
  get fate(): string | null {
    return this.#fate;
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#options;
    const isGroupLeader = process.platform !== "win32";
    // Whoever gave up waiting has closed it before it began.
    if (this.#fate !== null) throw new Failure("tool.unavailable", this.#fate);
    const child = spawn(command, args, { cwd, env, stdio: "pipe", shell: false, detached: isGroupLeader, windowsHide: true });
    if (!isStarted(child)) {
      const [error] = (await once(child, "error")) as [NodeJS.ErrnoException];
      this.#fate = `it cannot be started (${error.code ?? "no reason given"})`;
      throw new Failure("tool.unavailable", this.#fate);
    }
    this.#child = child;
    this.pid = child.pid as number;
    this.#ended = once(child, "exit").catch(() => {});
    child.stdin.on("error", (error) => this.onerror?.(error));
    child.stdout.on("error", (error) => this.onerror?.(error));
    child.stdout.on("data", (data: Buffer) => this.#hear(data));
    this.#listenToErrors(child);
    child.once("exit", (code, signal) => {
      const words = this.#lastWords.trim();
      this.#fate ??= `it ended (${signal ?? `exit ${code}`})${words === "" ? "" : `: ${shown(words)}`}`;
      this.#endGroup("SIGKILL");
      this.onclose?.();
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (!stdin?.writable) throw new Failure("tool.unavailable", this.#fate ?? "it is not running");
    // One that asks and asks, and never reads an answer.
    if (stdin.writableLength > MESSAGE_AT_MOST) throw this.#giveUp("it does not read what it is sent");
    if (stdin.write(`${JSON.stringify(message)}\n`)) return;
    this.#drained ??= Promise.race([once(stdin, "drain"), this.#ended]).finally(() => {
      this.#drained = undefined;
    });
    await this.#drained;
  }

  /** With everything it has started: first by closing its input, then by a signal, then by one that cannot be refused. */
  async close(): Promise<void> {
    const child = this.#child;
    this.#fate ??= "it was stopped";
    if (!child) return;
    const isGone = (): boolean => child.exitCode !== null || child.signalCode !== null;
    child.stdin.end();
    await Promise.race([this.#ended, sleep(LEAVE_MS)]);
    if (!isGone()) {
      this.#endGroup("SIGTERM");
      await Promise.race([this.#ended, sleep(LEAVE_MS)]);
    }
    this.#endGroup("SIGKILL");
    if (!isGone()) await this.#ended;
  }

  #endGroup(signal: NodeJS.Signals): void {
    if (this.pid === null) return;
    try {
      process.kill(process.platform === "win32" ? this.pid : -this.pid, signal);
    } catch {
      // Nobody is left of it.
    }
  }

  #giveUp(why: string): Failure {
    this.#fate ??= why;
    this.#endGroup("SIGKILL");
    return new Failure("tool.unavailable", this.#fate);
  }

  #hear(data: Buffer): void {
    let begin = 0;
    for (let end = data.indexOf(NEWLINE); end >= 0; end = data.indexOf(NEWLINE, begin)) {
      this.#pieces.push(data.subarray(begin, end));
      const line = Buffer.concat(this.#pieces).toString("utf8").trim();
      this.#pieces = [];
      this.#size = 0;
      begin = end + 1;
      if (line !== "") this.#take(line);
    }
    if (begin < data.length) this.#pieces.push(data.subarray(begin));
    this.#size += data.length - begin;
    if (this.#size <= MESSAGE_AT_MOST) return;
    this.#pieces = [];
    this.#giveUp(TOO_LARGE);
  }

  /** What is no message is left alone: some servers print greetings where only messages belong. */
  #take(line: string): void {
    if (Buffer.byteLength(line) > MESSAGE_AT_MOST) return void this.#giveUp(TOO_LARGE);
    let message: JSONRPCMessage | undefined;
    try {
      message = this.#read(line);
    } catch {
      this.#options.heard(`not a message: ${line.slice(0, LINE_AT_MOST)}`);
    }
    if (message) this.onmessage?.(message);
  }

  #listenToErrors(child: ChildProcessWithoutNullStreams): void {
    let open = "";
    child.stderr.setEncoding("utf8");
    child.stderr.on("error", () => {});
    child.stderr.on("data", (text: string) => {
      this.#lastWords = (this.#lastWords + text).slice(-LAST_WORDS);
      const lines = (open + text).split("\n");
      // A line without an end is not collected for ever.
      open = (lines.pop() as string).slice(0, LINE_AT_MOST);
      for (const line of lines) if (line.trim() !== "") this.#options.heard(line.slice(0, LINE_AT_MOST));
    });
  }
}
