import { setTimeout as sleep } from "node:timers/promises";
import { telegramStandIn } from "../test/platforms/telegram.ts";
import { startPostgres } from "../test/postgres-server.ts";
import type { BenchOptions } from "./main.ts";
import { type House, openHouse } from "./nodes/house.ts";
import { runParts } from "./parts.ts";
import type { Figure, Goal, Section } from "./report.ts";
import { interleave, ratios, spread } from "./spread.ts";

const NODES = [1, 2, 4] as const;
/** For each node, however many there are: what has not been compiled yet is dear, and each of them compiles for itself. */
const WARM_UP_MESSAGES = 1_500;
const WARM_UP_PART = 500;
const CONVERSATIONS = 64;
/** What one node gets, however many there are; and what they get together. A node costs a little also where nothing is said. */
const PER_SECOND_EACH = 10;
const PER_SECOND_IN_ALL = 40;
/** Short ones, by turns: what the machine has besides at one moment then concerns all of them. */
const WINDOWS = 8;
const WINDOW_MS = 5_000;
const SETTLING_MS = 3_000;
const IDLE_MS = 20_000;
const SAME_COST: Goal = { atMost: 1.1 };
const IDLE_GOAL: Goal = { atMost: 2 };

interface Cost {
  readonly cpuMs: number;
  readonly statements: number;
}

async function withPostgres<T>(body: (url: string) => Promise<T>): Promise<T> {
  const server = await startPostgres({ fsync: "on", synchronous_commit: "on" });
  try {
    return await body(server.url);
  } finally {
    await server.remove();
  }
}

type Load = "each" | "shared";

/** Where each node gets as much as one alone; and where they share what one alone gets. */
const LOADS: Readonly<Record<Load, (nodes: number) => number>> = {
  each: (nodes) => PER_SECOND_EACH * nodes,
  shared: () => PER_SECOND_IN_ALL,
};

interface Window {
  readonly messages: number;
  readonly statements: number;
}

async function warmUp(house: House, nodes: number): Promise<void> {
  // In parts: no more than so many may wait for one agent.
  for (let part = 0; part < WARM_UP_MESSAGES * nodes; part += WARM_UP_PART) {
    await Promise.all(Array.from({ length: WARM_UP_PART }, (_, index) => house.post(index % CONVERSATIONS)));
    await house.settled();
  }
}

async function oneWindow(house: House, perSecond: number, number: number): Promise<Window> {
  // What is told and sealed of what was before is no cost of what follows.
  await sleep(SETTLING_MS);
  house.counter.forget();
  house.mark();
  const messages = (perSecond * WINDOW_MS) / 1_000;
  const begun = performance.now();
  const posts: Promise<void>[] = [];
  for (let message = 0; message < messages; message++) {
    await sleep(Math.max(0, begun + (message * 1_000) / perSecond - performance.now()));
    posts.push(house.post((number + 1) * CONVERSATIONS + (message % CONVERSATIONS)));
  }
  await Promise.all(posts);
  await house.settled();
  const statements = house.counter.total();
  house.mark();
  return { messages, statements };
}

/** Of one message in each window, by load and number of nodes; messages come to the nodes by turns. */
async function costsOf({ rounds, progress }: BenchOptions, folder: string, database: string): Promise<Record<Load, Map<number, Cost[]>>> {
  const loads = Object.keys(LOADS) as Load[];
  const windowsOfEach = rounds * WINDOWS * loads.length;
  const houses: { readonly nodes: number; readonly house: House; readonly windows: Window[] }[] = [];
  for (const nodes of NODES) {
    progress(`nodes, warming up: ${nodes}`);
    const house = await openHouse(folder, database, `messages_${nodes}`, nodes, null, windowsOfEach);
    houses.push({ nodes, house, windows: [] });
    await warmUp(house, nodes);
  }
  for (let number = 0; number < windowsOfEach; number++) {
    progress(`nodes, window ${number + 1} of ${windowsOfEach}`);
    const perSecond = LOADS[loads[number % loads.length] as Load];
    for (const { nodes, house, windows } of houses) windows.push(await oneWindow(house, perSecond(nodes), number));
  }
  const costs: Record<Load, Map<number, Cost[]>> = { each: new Map(), shared: new Map() };
  for (const { nodes, house, windows } of houses) {
    const cpuMs = await house.end();
    const all = windows.map(({ messages, statements }, number) => ({
      cpuMs: (cpuMs[number] as number) / messages,
      statements: statements / messages,
    }));
    for (const [place, load] of loads.entries())
      costs[load].set(
        nodes,
        all.filter((_, number) => number % loads.length === place),
      );
  }
  return costs;
}

async function messages(options: BenchOptions, folder: string): Promise<Section> {
  const costs = await withPostgres((database) => costsOf(options, folder, database));
  const figures = (what: string, unit: Figure["unit"], load: Load, value: (cost: Cost) => number, goal?: Goal): Figure[] => {
    const of = (nodes: number): number[] => (costs[load].get(nodes) as Cost[]).map(value);
    return NODES.map((nodes) => ({
      name: `${what}, ${nodes === 1 ? "one node" : `${nodes} nodes`}`,
      unit,
      value: spread(of(nodes)),
      ...(nodes > 1 && { against: { name: "one node", value: spread(of(1)) }, ratio: ratios(of(nodes), of(1)), ...(goal && { goal }) }),
    }));
  };
  return {
    title: "What a message costs on several nodes",
    notes: [
      `Messages posted to the nodes by turns, on one machine and one PostgreSQL; a model in each that answers at once: ${PER_SECOND_EACH} a second for each node, and by turns with that ${PER_SECOND_IN_ALL} a second for all of them together, in windows of ${WINDOW_MS / 1_000} s.`,
      "Processor time of all nodes together. Statements as PostgreSQL hears them, BEGIN and COMMIT among them, also those of chores.",
    ],
    figures: [
      ...figures("processor time of a message", "ms", "each", ({ cpuMs }) => cpuMs, SAME_COST),
      ...figures("statements of a message", "statements", "each", ({ statements }) => statements, SAME_COST),
      ...figures("where they share the load: processor time", "ms", "shared", ({ cpuMs }) => cpuMs),
      ...figures("where they share the load: statements", "statements", "shared", ({ statements }) => statements),
    ],
  };
}

/** Statements a second of each of so many nodes with nothing to do. */
async function idleCost(nodes: number, isOnPlatform: boolean, folder: string, database: string, schema: string): Promise<number> {
  const telegram = isOnPlatform ? await telegramStandIn() : null;
  const house = await openHouse(folder, database, schema, nodes, telegram?.account ?? null, 1);
  await sleep(SETTLING_MS);
  house.counter.forget();
  house.mark();
  await sleep(IDLE_MS);
  const statements = house.counter.total();
  house.mark();
  await house.end();
  await telegram?.close();
  return statements / nodes / (IDLE_MS / 1_000);
}

async function idle({ rounds, progress }: BenchOptions, folder: string): Promise<Section> {
  let schemas = 0;
  const sides = {
    "one node": [1, false],
    "one node, with a Telegram account": [1, true],
    "each of four nodes": [4, false],
    "each of four nodes, with a Telegram account": [4, true],
  } as const;
  const costs = await withPostgres((database) =>
    interleave(
      Object.fromEntries(
        Object.entries(sides).map(([name, [nodes, isOnPlatform]]) => [
          name,
          () => idleCost(nodes, isOnPlatform, folder, database, `idle_${schemas++}`),
        ]),
      ),
      rounds,
      progress,
    ),
  );
  return {
    title: "What a node costs that has nothing to do",
    notes: ["Statements a second as PostgreSQL hears them, BEGIN and COMMIT among them."],
    figures: Object.entries(costs).map(([name, values]) => ({ name, unit: "statements/s", value: spread(values), goal: IDLE_GOAL })),
  };
}

export function run(options: BenchOptions): Promise<Section[]> {
  return runParts("nodes", { messages, idle }, options);
}
