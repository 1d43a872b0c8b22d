import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { isOver, type Run } from "../../src/contract/wire.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { checkTurns } from "./turns-check.ts";
import type { TurnsPlan } from "./turns-daemon-worker.ts";
import { Witness } from "./turns-witness.ts";

const WORKER = new URL("./turns-daemon-worker.ts", import.meta.url).pathname;
/** Every line of a turn at which it may die, and the moment in which something was done outside and nobody inside knows yet. */
export const TURN_POINTS = [
  "message.admitted",
  "turn.begun",
  "model.response.before",
  "model.response.recorded",
  "tool.intended",
  "tool.ran",
  "tool.settled",
  "turn.answered",
  "turn.committed",
  "outside: look",
  "outside: put",
  "outside: fire",
] as const;

/** Messages at once, each in a conversation of its own. */
const AT_ONCE = 3;
const PATIENCE_MS = 60_000;
const LEASE_MS = 2_000;

export interface TurnsOptions {
  readonly database: "sqlite" | "postgres";
  /** How often each point must be hit. */
  readonly hits: number;
  readonly seed: number;
  readonly postgresUrl?: string;
  readonly progress: (line: string) => void;
}

export interface TurnsReport {
  readonly database: string;
  readonly seed: number;
  readonly hits: Record<string, number>;
  readonly messages: number;
  readonly counts: Record<string, number>;
  readonly problems: string[];
}

/** Kills a daemon at every line of a turn, again and again, and counts from outside what was done and what was answered. */
export async function turnsChaos(options: TurnsOptions): Promise<TurnsReport> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-turns-"));
  const place: StorePlace | undefined = options.database === "postgres" ? postgresPlace(options.postgresUrl) : undefined;
  const store = place ? `store: ${JSON.stringify(place.location)}\n` : "";
  writeFileSync(join(home, "guildhall.yaml"), `${store}agents: { main: { model: outside/model, tools: full } }\n`);
  const witness = await Witness.start();
  const hits: Record<string, number> = Object.fromEntries(TURN_POINTS.map((point) => [point, 0]));
  const random = seeded(options.seed);
  const sent = new Map<string, string>();
  const over = new Map<string, Run>();
  let life: Life | undefined;
  try {
    const most = 3 * options.hits * TURN_POINTS.length;
    for (let cycle = 0; TURN_POINTS.some((point) => (hits[point] as number) < options.hits); cycle++) {
      if (cycle >= most) throw new Error(`after ${most} lives some points are not reached: ${JSON.stringify(hits)}`);
      const due = TURN_POINTS.filter((point) => (hits[point] as number) < options.hits);
      const point = due[cycle % due.length] as string;
      const inside = !point.startsWith("outside");
      // A commit comes once per message, calls come several times: how many to let pass before the blow.
      const hit = 1 + Math.floor(random() * (/call|tool|response|outside/.test(point) ? 2 * AT_ONCE : AT_ONCE));
      // Now and then it dies again while it takes up what the life before has left; not so often that a message has no chance.
      const armed = cycle % 4 === 3;
      life = await Life.begin({ home, witness: witness.url, leaseMs: LEASE_MS, crash: inside ? { point, hit, armed } : null }, over);
      if (!armed) await life.finish(sent);
      life.arm();
      if (!inside) killAtEffect(witness, life, point.slice("outside: ".length), hit);
      const died = await life.work(AT_ONCE, `${cycle}`, sent);
      witness.onEffect = null;
      if (died) hits[point] = (hits[point] as number) + 1;
      else await life.kill();
      if (cycle % 20 === 19) options.progress(`${cycle + 1} lives, ${TURN_POINTS.map((each) => hits[each]).join(" ")}`);
    }
    life = await Life.begin({ home, witness: witness.url, leaseMs: LEASE_MS, crash: null }, over);
    over.clear();
    const runs = await life.finish(sent);
    const { problems, counts } = checkTurns(runs, witness, await life.events());
    return { database: options.database, seed: options.seed, hits, messages: sent.size, counts, problems };
  } finally {
    await life?.kill();
    witness.close();
    await place?.remove();
    rmSync(home, { recursive: true, force: true });
  }
}

function killAtEffect(witness: Witness, life: Life, tool: string, hit: number): void {
  let seen = 0;
  witness.onEffect = (done) => {
    if (done === tool && ++seen === hit) life.kill();
  };
}

/** One daemon, from its start to its death. */
class Life {
  readonly #child: ChildProcess;
  readonly #url: string;
  readonly #token: string;
  readonly #ended: Promise<void>;
  #dead = false;
  /** Of earlier lives too: what is over does not change. */
  readonly #over: Map<string, Run>;

  private constructor(child: ChildProcess, said: { url: string; token: string }, over: Map<string, Run>) {
    this.#over = over;
    this.#child = child;
    this.#url = said.url;
    this.#token = said.token;
    this.#ended = new Promise((resolve) => child.once("exit", () => resolve()));
    this.#ended.then(() => {
      this.#dead = true;
    });
  }

  static async begin(plan: TurnsPlan, over: Map<string, Run>): Promise<Life> {
    const child = spawn(process.execPath, [WORKER, JSON.stringify(plan)], { stdio: "pipe" });
    let errors = "";
    child.stderr?.on("data", (data) => {
      errors = (errors + data).slice(-4_000);
    });
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout as NodeJS.ReadableStream }).once("line", resolve);
      child.once("exit", () => reject(new Error(`the daemon ended before it was ready: ${errors}`)));
    }).catch((error: Error) => {
      // Work of the life before may take it to its point before it says that it is ready.
      if (plan.crash && errors === "") return null;
      throw error;
    });
    return line === null ? Life.begin(plan, over) : new Life(child, JSON.parse(line) as { url: string; token: string }, over);
  }

  /** Sends messages and waits until all are answered or this life is over. Answers whether it died. */
  async work(count: number, prefix: string, sent: Map<string, string>): Promise<boolean> {
    const runs: string[] = [];
    try {
      await Promise.all(
        Array.from({ length: count }, async (_, index) => {
          const id = `${prefix}.${index}`;
          // Sent again by the last life if this one takes it without a word.
          sent.set(id, "");
          const { runId } = (await this.#call("POST", "/api/messages", messageOf(id))) as { runId: string };
          sent.set(id, runId);
          runs.push(runId);
        }),
      );
      const until = Date.now() + PATIENCE_MS;
      while (!this.#dead && Date.now() < until) {
        const states = await Promise.all(runs.map((run) => this.#run(run)));
        if (states.every(({ status }) => isOver(status))) {
          // What follows the commit has its own point.
          await Promise.race([this.#ended, sleep(200)]);
          break;
        }
        await Promise.race([this.#ended, sleep(20)]);
      }
      if (!this.#dead && Date.now() >= until) throw new Error(`${runs.join(" ")}: no answer within ${PATIENCE_MS / 1000} s`);
    } catch (error) {
      await Promise.race([this.#ended, sleep(2_000)]);
      if (!this.#dead) throw error;
    }
    return this.#dead;
  }

  /** From now on it may die. */
  arm(): void {
    this.#child.stdin?.on("error", () => {});
    this.#child.stdin?.write("now\n");
  }

  /** Every message that was ever sent, with the run that came of it, once it is over. */
  async finish(sent: ReadonlyMap<string, string>): Promise<Map<string, Run>> {
    const runs = new Map<string, Run>();
    const until = Date.now() + PATIENCE_MS;
    for (const id of sent.keys()) {
      const known = this.#over.get(id);
      if (known) {
        runs.set(id, known);
        continue;
      }
      const { runId } = (await this.#call("POST", "/api/messages", messageOf(id))) as { runId: string };
      let run = await this.#run(runId);
      for (; !isOver(run.status) && Date.now() < until; run = await this.#run(runId)) await sleep(20);
      runs.set(id, run);
      if (isOver(run.status)) this.#over.set(id, run);
    }
    return runs;
  }

  /** What the ledger says of calls that nobody can know about, by run. */
  async events(): Promise<Map<string, number>> {
    const unknown = new Map<string, number>();
    const stop = new AbortController();
    const answer = await fetch(`${this.#url}/api/events?after=0`, { headers: this.#headers, signal: stop.signal });
    const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const part = await Promise.race([reader.read(), sleep(1_500).then(() => null)]);
      if (part === null || part.done) break;
      const lines = (rest + part.value).split("\n");
      rest = lines.pop() as string;
      for (const line of lines)
        if (line.startsWith("data: ")) {
          const event = JSON.parse(line.slice(6)) as { type: string; subject: string[]; data: { state?: string } };
          const run = event.subject[1] as string;
          if (event.type === "tool.settled" && event.data.state === "unknown") unknown.set(run, (unknown.get(run) ?? 0) + 1);
        }
    }
    stop.abort();
    return unknown;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  get #headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#token}` };
  }

  async #run(id: string): Promise<Run> {
    return (await this.#call("GET", `/api/runs/${id}`)) as Run;
  }

  async #call(method: string, path: string, body?: unknown): Promise<unknown> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${this.#url}${path}`, { method, headers: this.#headers, ...sent });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }
}

const messageOf = (id: string) => ({ id, platform: "test", chat: id, peer: id, chat_type: "dm", text: `go ${id}` });

function seeded(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 12)) >>> 0) / 2 ** 32;
  };
}
