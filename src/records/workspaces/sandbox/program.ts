import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { Failure } from "../../../kernel/failure.ts";
import { isStarted } from "../../../kernel/is-started.ts";
import type { KeptOutput } from "./kept-output.ts";
import type { RunEnd, SandboxLimits } from "./sandbox.ts";

/** From asking to end until ending. A turn that is stopped waits for its calls for less than a second. */
const GRACE_MS = 400;

/** How a command is started: by bubblewrap, whose arguments come by a pipe, or by itself. */
export interface Started {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string>>;
  /** What bubblewrap reads from its further pipes, from the third on. */
  readonly pipes: readonly (string | Uint8Array)[];
  /** It tells the number of the first process inside by one more pipe. */
  readonly tells: boolean;
  /** Handles that would be inherited from whoever started the daemon. */
  readonly inherited: readonly number[];
}

/** A running command with everything it has started. */
export class Program {
  readonly output: KeptOutput;
  readonly #child: ChildProcess;
  readonly #group: Promise<number | undefined>;
  #ended: RunEnd["ended"] = null;
  #force: NodeJS.Timeout | undefined;
  /** When it has ended and all it said was read. */
  readonly over: Promise<Pick<RunEnd, "code" | "signal" | "ended">>;

  constructor(started: Started, limits: SandboxLimits, kept: KeptOutput, onOutput: (text: string) => void = () => {}) {
    this.output = kept;
    const { file, args, env, cwd, pipes, tells, inherited } = started;
    const extra: ("pipe" | "ignore" | number)[] = [...pipes.map(() => "pipe" as const), ...(tells ? (["pipe"] as const) : [])];
    const nothing = openSync("/dev/null", "r");
    for (const handle of inherited.filter((number) => number >= extra.length + 3)) {
      while (extra.length + 3 < handle) extra.push("ignore");
      extra[handle - 3] = nothing;
    }
    // A group of its own, also without a sandbox, so that all of it can be ended together.
    try {
      this.#child = spawn(file, args, { env, cwd, detached: true, stdio: ["ignore", "pipe", "pipe", ...extra] });
    } finally {
      closeSync(nothing);
    }
    // Where no descriptor is left, there are no streams either.
    if (!isStarted(this.#child) && this.#child.stdio === undefined)
      throw new Failure("sandbox.unavailable", "the program could not be started: too many files are open", {
        hint: "Close some, or raise the limit (`ulimit -n`) of the daemon.",
      });
    // A program that does not take what it is given, or dies, says so by its end.
    for (const stream of this.#child.stdio) stream?.on("error", () => {});
    for (const [index, data] of pipes.entries()) (this.#child.stdio[index + 3] as Writable).end(data);
    this.#group = tells ? groupInside(this.#child.stdio[pipes.length + 3] as Readable) : Promise.resolve(this.#child.pid);
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (data: Uint8Array) => {
        const text = kept.add(data);
        if (kept.bytes > limits.outputBytes) this.end("output");
        else onOutput(text);
      });
    if (!tells) this.#child.once("exit", () => this.#endLeft());
    this.over = this.#wait();
    // Whoever is interested awaits it; nobody else is disturbed.
    this.over.catch(() => {});
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async #wait(): Promise<Pick<RunEnd, "code" | "signal" | "ended">> {
    try {
      const [code, signal] = (await once(this.#child, "close")) as [number | null, NodeJS.Signals | null];
      this.output.end();
      return { code, signal, ended: this.#ended };
    } catch (error) {
      throw new Failure("sandbox.unavailable", `the program could not be started: ${(error as Error).message}`, { cause: error });
    } finally {
      clearTimeout(this.#force);
    }
  }

  /** Asks all of it to end, and soon after makes it. */
  end(because: NonNullable<RunEnd["ended"]>): void {
    if (this.#ended !== null) return;
    this.#ended = because;
    this.#force = setTimeout(() => this.endAtOnce(), GRACE_MS);
    void this.#group.then((group) => {
      if (group !== undefined && this.#isRunning) send(-group, "SIGTERM");
    });
  }

  /** Without bubblewrap, what has left the group lives on. With it, its first process takes everything along. */
  endAtOnce(): void {
    this.#ended ??= "stopped";
    if (!this.#isRunning) return;
    const { pid } = this.#child;
    if (pid !== undefined) send(-pid, "SIGKILL");
    this.#stopReading();
  }

  /** As in a sandbox: with the command ends what it left behind. */
  #endLeft(): void {
    if (this.#child.pid !== undefined) send(-this.#child.pid, "SIGKILL");
    const timer = setTimeout(() => this.#stopReading(), GRACE_MS);
    this.#child.once("close", () => clearTimeout(timer));
  }

  /** A pipe that is held open by what has left the group would keep us waiting. */
  #stopReading(): void {
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.destroy();
  }

  get #isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }
}

async function groupInside(pipe: Readable): Promise<number | undefined> {
  try {
    let text = "";
    for await (const piece of pipe) text += String(piece);
    const pid = (JSON.parse(text) as { "child-pid"?: unknown })["child-pid"];
    return typeof pid === "number" && pid > 1 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is over already.
  }
}
