import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isWorkflowOver, type WorkflowRun } from "../../src/contract/workflows.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { DaemonLife, seeded } from "./daemon-life.ts";
import { type Play, Witness } from "./turns-witness.ts";
import { checkWorkflows, FAN_OUT } from "./workflows-check.ts";

/** Every line of a workflow at which it may die, the moment in which something was done outside, and any moment at all. */
export const WORKFLOW_POINTS = [
  "workflow.started",
  "turn.begun",
  "model.response.before",
  "model.response.recorded",
  "tool.intended",
  "tool.ran",
  "tool.settled",
  "turn.answered",
  "turn.committed",
  "step.settled",
  "outside: put",
  "outside: fire",
  "random",
] as const;

const AT_ONCE = 2;
const PATIENCE_MS = 120_000;
const LEASE_MS = 2_000;
/** Of a whole run of the workflow, roughly: any moment of it. */
const RANDOM_MS = 1_500;

export interface WorkflowsOptions {
  readonly database: "sqlite" | "postgres";
  /** How often each point must be hit, and how often it dies at random. */
  readonly hits: number;
  readonly randomly: number;
  /** Only these points; all unless given. */
  readonly points?: readonly (typeof WORKFLOW_POINTS)[number][];
  readonly seed: number;
  readonly postgresUrl?: string;
  readonly progress: (line: string) => void;
}

export interface WorkflowsReport {
  readonly database: string;
  readonly seed: number;
  readonly hits: Record<string, number>;
  readonly workflows: number;
  readonly counts: Record<string, number>;
  readonly problems: string[];
}

/** One that plans, ten that work side by side, one that gathers what they said. */
const WORKFLOW = {
  name: "chaos",
  keys: { items: { schema: { type: "array" } }, results: { policy: "append" } },
  steps: [
    { id: "plan", agent: "main", goal: "chaos {{input.name}} plan", writes: ["items"] },
    {
      id: "work",
      agent: "worker",
      needs: ["plan"],
      foreach: "items",
      max_parallel: FAN_OUT,
      reads: ["items"],
      writes: ["results"],
      goal: "chaos {{input.name}} item {{item}}",
    },
    { id: "gather", agent: "main", needs: ["work"], reads: ["results"], writes: ["summary"], goal: "chaos {{input.name}} gather" },
  ],
  outputs: ["results", "summary"],
};

const play: Play = ({ message, results }, call) => {
  const [, what] = /chaos \S+ (plan|item \d+|gather)/.exec(message) ?? [];
  if (what === "plan") return { text: JSON.stringify(Array.from({ length: FAN_OUT }, (_, index) => index)), calls: [] };
  if (results.length === 0) return { text: "first", calls: [call("look"), call("put"), call("fire")] };
  const doubts = results.flat().filter(({ text }) => text.startsWith("outcome unknown")).length;
  return { text: `${what} done, ${doubts} unknown`, calls: [] };
};

/** Kills a daemon in the middle of workflows, at every line and at any time, and counts from outside what was done. */
export async function workflowsChaos(options: WorkflowsOptions): Promise<WorkflowsReport> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-workflows-"));
  const place: StorePlace | undefined = options.database === "postgres" ? postgresPlace(options.postgresUrl) : undefined;
  const store = place ? `store: ${JSON.stringify(place.location)}\n` : "";
  writeFileSync(join(home, "guildhall.yaml"), `${store}model: outside/model\ntools: full\nagents: { main: {}, worker: {} }\n`);
  const witness = await Witness.start(play);
  const hits: Record<string, number> = Object.fromEntries((options.points ?? WORKFLOW_POINTS).map((point) => [point, 0]));
  const points = options.points ?? WORKFLOW_POINTS;
  const wanted = (point: string): number => (point === "random" ? options.randomly : options.hits);
  const random = seeded(options.seed);
  const started = new Map<string, string>();
  let life: DaemonLife | undefined;
  try {
    const most = 3 * points.reduce((sum, point) => sum + wanted(point), 0);
    for (let cycle = 0; points.some((point) => (hits[point] as number) < wanted(point)); cycle++) {
      if (cycle >= most) throw new Error(`after ${most} lives some points are not reached: ${JSON.stringify(hits)}`);
      const due = points.filter((point) => (hits[point] as number) < wanted(point));
      const point = due[cycle % due.length] as string;
      const inside = point !== "random" && !point.startsWith("outside");
      const hit = 1 + Math.floor(random() * (point === "workflow.started" ? AT_ONCE : AT_ONCE * FAN_OUT));
      // Now and then it dies again while it takes up what the life before has left.
      const armed = cycle % 4 === 3;
      life = await DaemonLife.begin({ home, witness: witness.url, leaseMs: LEASE_MS, crash: inside ? { point, hit, armed } : null });
      if (!armed) await finish(life, started);
      life.arm();
      if (point.startsWith("outside")) killAtEffect(witness, life, point.slice("outside: ".length), hit);
      const victim = life;
      const blow = point === "random" ? setTimeout(() => void victim.kill(), random() * RANDOM_MS) : undefined;
      const died = await work(life, `${cycle}`, started);
      clearTimeout(blow);
      witness.onEffect = null;
      if (died) hits[point] = (hits[point] as number) + 1;
      else await life.kill();
      if (cycle % 20 === 19) options.progress(`${cycle + 1} lives, ${points.map((each) => hits[each]).join(" ")}`);
    }
    life = await DaemonLife.begin({ home, witness: witness.url, leaseMs: LEASE_MS, crash: null });
    const runs = await finish(life, started);
    const { problems, counts } = checkWorkflows(runs, witness, await life.events());
    return { database: options.database, seed: options.seed, hits, workflows: started.size, counts, problems };
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
    if (done === tool && ++seen === hit) void life.kill();
  };
}

/** Starts workflows and waits until all are over or this life is. Answers whether it died. */
async function work(life: DaemonLife, prefix: string, started: Map<string, string>): Promise<boolean> {
  const names = Array.from({ length: AT_ONCE }, (_, index) => `${prefix}.${index}`);
  await life.unlessDead(async () => {
    await Promise.all(
      names.map(async (name) => {
        // Asked for again, by the same key, if this life takes it without a word.
        started.set(name, "");
        started.set(name, await start(life, name));
      }),
    );
    await untilOver(
      life,
      names.map((name) => started.get(name) as string),
    );
    // What follows the last commit has its own point.
    await Promise.race([life.ended, sleep(200)]);
  });
  return life.dead;
}

/** Whoever asked in the life before may have died in the middle: where nobody knows that, its key is free when its lease has run out. */
async function start(life: DaemonLife, name: string): Promise<string> {
  for (const until = Date.now() + PATIENCE_MS; ; await sleep(100))
    try {
      const asked = { workflow: WORKFLOW, input: { name }, idempotency_key: name };
      return (await life.call<{ id: string }>("POST", "/api/workflows/runs", asked)).id;
    } catch (error) {
      if (!String(error).includes("request.in_progress") || Date.now() > until) throw error;
    }
}

/** All that were ever asked for, once they are over. */
async function finish(life: DaemonLife, started: Map<string, string>): Promise<Map<string, WorkflowRun>> {
  for (const [name, id] of started) if (id === "") started.set(name, await start(life, name));
  const ids = [...started.values()];
  await untilOver(life, ids);
  const runs = new Map<string, WorkflowRun>();
  for (const [name, id] of started) runs.set(name, await readRun(life, id));
  return runs;
}

async function untilOver(life: DaemonLife, ids: readonly string[]): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  const open = new Set(ids);
  while (open.size > 0 && !life.dead) {
    if (Date.now() >= until) throw new Error(`${[...open].join(" ")}: not over within ${PATIENCE_MS / 1000} s`);
    for (const id of open) if (isWorkflowOver((await readRun(life, id)).status)) open.delete(id);
    if (open.size > 0) await Promise.race([life.ended, sleep(20)]);
  }
}

function readRun(life: DaemonLife, id: string): Promise<WorkflowRun> {
  return life.call<WorkflowRun>("GET", `/api/workflows/runs/${id}`);
}
