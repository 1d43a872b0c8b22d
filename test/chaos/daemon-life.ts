import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEvent } from "../../src/contract/events.ts";
import type { TurnsPlan } from "./turns-daemon-worker.ts";
import type { UpgradePlan } from "./upgrade-daemon-worker.ts";

const WORKER = new URL("./turns-daemon-worker.ts", import.meta.url).pathname;
/** The stream of events has nothing more to say when it is silent for so long. */
const SILENCE_MS = 1_500;

/** One daemon, from its start to its death. */
export class DaemonLife {
  readonly #child: ChildProcess;
  readonly #url: string;
  readonly #token: string;
  readonly ended: Promise<void>;
  #dead = false;

  private constructor(child: ChildProcess, said: { url: string; token: string }) {
    this.#child = child;
    this.#url = said.url;
    this.#token = said.token;
    this.ended = new Promise((resolve) => child.once("exit", () => resolve()));
    this.ended.then(() => {
      this.#dead = true;
    });
  }

  /** `environment`: what this one finds there besides. `worker`: another program that says its address and token in its first line. */
  static async begin(
    plan: TurnsPlan | UpgradePlan,
    environment: Readonly<Record<string, string>> = {},
    worker = WORKER,
  ): Promise<DaemonLife> {
    const child = spawn(process.execPath, [worker, JSON.stringify(plan)], { stdio: "pipe", env: { ...process.env, ...environment } });
    let errors = "";
    child.stderr?.on("data", (data) => {
      errors = (errors + data).slice(-4_000);
    });
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout as NodeJS.ReadableStream }).once("line", resolve);
      child.once("exit", () => reject(new Error(`the daemon ended before it was ready: ${errors}`)));
    }).catch((error: Error) => {
      // Work of the life before may take it to its point before it says that it is ready.
      if ("crash" in plan && plan.crash && errors === "") return null;
      throw error;
    });
    return line === null
      ? DaemonLife.begin(plan, environment, worker)
      : new DaemonLife(child, JSON.parse(line) as { url: string; token: string });
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** From now on it may die. */
  arm(): void {
    this.#child.stdin?.on("error", () => {});
    this.#child.stdin?.write("now\n");
  }

  /** From now on it dies at the `hit`-th time that it comes to this point. */
  dieAt(point: string, hit: number): void {
    this.#child.stdin?.on("error", () => {});
    this.#child.stdin?.write(`${JSON.stringify({ point, hit })}\n`);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }

  /** Whatever goes wrong is its death, unless it lives on. */
  async unlessDead(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      await Promise.race([this.ended, sleep(2_000)]);
      if (!this.#dead) throw error;
    }
  }

  async call<Answer>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer> {
    const sent = { ...(body === undefined ? {} : { body: JSON.stringify(body) }), ...(signal ? { signal } : {}) };
    const answer = await fetch(`${this.#url}${path}`, { method, headers: this.#headers, ...sent });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Answer;
  }

  /** The whole ledger. */
  async events(): Promise<LedgerEvent[]> {
    const events: LedgerEvent[] = [];
    const stop = new AbortController();
    const answer = await fetch(`${this.#url}/api/events?after=0`, { headers: this.#headers, signal: stop.signal });
    const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const part = await Promise.race([reader.read(), sleep(SILENCE_MS).then(() => null)]);
      if (part === null || part.done) break;
      const lines = (rest + part.value).split("\n");
      rest = lines.pop() as string;
      for (const line of lines) if (line.startsWith("data: ")) events.push(JSON.parse(line.slice(6)) as LedgerEvent);
    }
    stop.abort();
    return events;
  }

  get #headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#token}` };
  }
}

export function seeded(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 12)) >>> 0) / 2 ** 32;
  };
}
