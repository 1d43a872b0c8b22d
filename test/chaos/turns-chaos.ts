import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isOver, type Run } from "../../src/contract/wire.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { DaemonLife, seeded } from "./daemon-life.ts";
import { checkTurns } from "./turns-check.ts";
import { Witness } from "./turns-witness.ts";

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
  /** Only these points; all unless given. */
  readonly points?: readonly (typeof TURN_POINTS)[number][];
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
  const points = options.points ?? TURN_POINTS;
  const hits: Record<string, number> = Object.fromEntries(points.map((point) => [point, 0]));
  const random = seeded(options.seed);
  const sent = new Map<string, string>();
  const over = new Map<string, Run>();
  let life: DaemonLife | undefined;
  try {
    const most = 3 * options.hits * points.length;
    for (let cycle = 0; points.some((point) => (hits[point] as number) < options.hits); cycle++) {
      if (cycle >= most) throw new Error(`after ${most} lives some points are not reached: ${JSON.stringify(hits)}`);
      const due = points.filter((point) => (hits[point] as number) < options.hits);
      const point = due[cycle % due.length] as string;
      const inside = !point.startsWith("outside");
      // A commit comes once per message, calls come several times: how many to let pass before the blow.
      const hit = 1 + Math.floor(random() * (/call|tool|response|outside/.test(point) ? 2 * AT_ONCE : AT_ONCE));
      // Now and then it dies again while it takes up what the life before has left; not so often that a message has no chance.
      const armed = cycle % 4 === 3;
      life = await DaemonLife.begin({ home, witness: witness.url, leaseMs: LEASE_MS, crash: inside ? { point, hit, armed } : null });
      if (!armed) await finish(life, sent, over);
      life.arm();
      if (!inside) killAtEffect(witness, life, point.slice("outside: ".length), hit);
      const died = await work(life, AT_ONCE, `${cycle}`, sent);
      witness.onEffect = null;
      if (died) hits[point] = (hits[point] as number) + 1;
      else await life.kill();
      if (cycle % 20 === 19) options.progress(`${cycle + 1} lives, ${points.map((each) => hits[each]).join(" ")}`);
    }
    life = await DaemonLife.begin({ home, witness: witness.url, leaseMs: LEASE_MS, crash: null });
    over.clear();
    const runs = await finish(life, sent, over);
    const { problems, counts } = checkTurns(runs, witness, await unknownCalls(life));
    return { database: options.database, seed: options.seed, hits, messages: sent.size, counts, problems };
  } finally {
    await life?.kill();
    witness.close();
    await place?.remove();
    rmSync(home, { recursive: true, force: true });
  }
}

function killAtEffect(witness: Witness, life: DaemonLife, tool: string, hit: number): void {
  let seen = 0;
  witness.onEffect = (done) => {
    if (done === tool && ++seen === hit) life.kill();
  };
}

/** Sends messages and waits until all are answered or this life is over. Answers whether it died. */
async function work(life: DaemonLife, count: number, prefix: string, sent: Map<string, string>): Promise<boolean> {
  const runs: string[] = [];
  await life.unlessDead(async () => {
    await Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const id = `${prefix}.${index}`;
        // Sent again by the last life if this one takes it without a word.
        sent.set(id, "");
        const { runId } = await life.call<{ runId: string }>("POST", "/api/messages", messageOf(id));
        sent.set(id, runId);
        runs.push(runId);
      }),
    );
    const until = Date.now() + PATIENCE_MS;
    while (!life.dead && Date.now() < until) {
      const states = await Promise.all(runs.map((run) => readRun(life, run)));
      if (states.every(({ status }) => isOver(status))) {
        // What follows the commit has its own point.
        await Promise.race([life.ended, sleep(200)]);
        break;
      }
      await Promise.race([life.ended, sleep(20)]);
    }
    if (!life.dead && Date.now() >= until) throw new Error(`${runs.join(" ")}: no answer within ${PATIENCE_MS / 1000} s`);
  });
  return life.dead;
}

/** Every message that was ever sent, with the run that came of it, once it is over. `over`: known from earlier lives, and does not change. */
async function finish(life: DaemonLife, sent: ReadonlyMap<string, string>, over: Map<string, Run>): Promise<Map<string, Run>> {
  const runs = new Map<string, Run>();
  const until = Date.now() + PATIENCE_MS;
  for (const id of sent.keys()) {
    const known = over.get(id);
    if (known) {
      runs.set(id, known);
      continue;
    }
    const { runId } = await life.call<{ runId: string }>("POST", "/api/messages", messageOf(id));
    let run = await readRun(life, runId);
    for (; !isOver(run.status) && Date.now() < until; run = await readRun(life, runId)) await sleep(20);
    runs.set(id, run);
    if (isOver(run.status)) over.set(id, run);
  }
  return runs;
}

/** What the ledger says of calls that nobody can know about, by run. */
async function unknownCalls(life: DaemonLife): Promise<Map<string, number>> {
  const unknown = new Map<string, number>();
  for (const { type, subject, data } of await life.events()) {
    const run = subject[1] as string;
    if (type === "tool.settled" && (data as { state?: string }).state === "unknown") unknown.set(run, (unknown.get(run) ?? 0) + 1);
  }
  return unknown;
}

function readRun(life: DaemonLife, id: string): Promise<Run> {
  return life.call<Run>("GET", `/api/runs/${id}`);
}

const messageOf = (id: string) => ({ id, platform: "test", chat: id, peer: id, chat_type: "dm", text: `go ${id}` });
