import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { telegramStandIn } from "../platforms/telegram.ts";
import { seeded } from "./daemon-life.ts";
import { checkNodes } from "./nodes-check.ts";
import { Cluster, type ClusterServer, crashableServer } from "./nodes-cluster.ts";
import { type Facts, gatherFacts, whatIsOpen } from "./nodes-facts.ts";
import { FAULT_KINDS, type FaultKind, Faults } from "./nodes-faults.ts";
import { Load } from "./nodes-load.ts";
import { configFor, environmentFor, play, thinking } from "./nodes-world.ts";
import { Witness } from "./turns-witness.ts";

export interface NodesOptions {
  readonly faults: Readonly<Record<FaultKind, number>>;
  readonly seed: number;
  /** Where it stands is kept here after every round; null: nowhere. */
  readonly file: string | null;
  /** Goes on where the file says, with its seed and its counts. */
  readonly resume: boolean;
  /** How much slower than usual everybody asks. */
  readonly pace?: number;
  readonly progress: (line: string) => void;
}

export interface NodesReport {
  readonly seed: number;
  readonly wanted: Readonly<Record<FaultKind, number>>;
  readonly rounds: number;
  readonly done: Record<FaultKind, number>;
  readonly hits: Record<string, number>;
  readonly counts: Record<string, number>;
  readonly problems: string[];
  readonly seconds: number;
}

export const LEASE_MS = 2_000;
/** A round has nodes and tables of its own, and is checked as a whole. */
const ROUND = 32;
/** Of a round, after the last fault. */
const PATIENCE_MS = 180_000;
const TELL_EVERY = 10;

/** Kills, stops and cuts off three nodes on one PostgreSQL, and crashes that too, while people and programs go on asking. */
export async function nodesChaos(options: NodesOptions): Promise<NodesReport> {
  const report = begun(options);
  const order = shuffled(
    FAULT_KINDS.flatMap((kind) => Array.from({ length: report.wanted[kind] }, () => kind)),
    seeded(report.seed),
  );
  const started = performance.now();
  const doneBefore = report.rounds * ROUND;
  let over = doneBefore;
  const tell = (): void => {
    if (++over % TELL_EVERY !== 0 && over !== order.length) return;
    const each = (performance.now() - started) / (over - doneBefore);
    options.progress(`${over} of ${order.length} faults, about ${Math.ceil(((order.length - over) * each) / 60_000)} min left`);
  };
  const server = await crashableServer();
  try {
    for (; report.rounds * ROUND < order.length; keep(options, report)) {
      const from = report.rounds * ROUND;
      const before = performance.now();
      await round(server, report, order.slice(from, from + ROUND), options, tell);
      (report as { rounds: number }).rounds++;
      (report as { seconds: number }).seconds += (performance.now() - before) / 1_000;
    }
    return report;
  } finally {
    await server.remove();
  }
}

async function round(
  server: ClusterServer,
  report: NodesReport,
  kinds: readonly FaultKind[],
  { progress, file, pace = 1 }: NodesOptions,
  tell: () => void,
): Promise<void> {
  const random = seeded(report.seed + 7_919 * (report.rounds + 1));
  const [telegram, witness] = await Promise.all([telegramStandIn(), Witness.start(play)]);
  thinking(witness, random);
  let cluster: Cluster | undefined;
  try {
    cluster = await Cluster.start(server, {
      config: configFor(telegram),
      witness: witness.url,
      leaseMs: LEASE_MS,
      environment: environmentFor(telegram),
    });
    const load = new Load(cluster, telegram, random, pace);
    const faults = new Faults(cluster, { leaseMs: LEASE_MS, random, done: tell });
    const began = performance.now();
    const since = (): string => `${Math.round((performance.now() - began) / 1_000)} s`;
    load.start();
    await faults.inflict(kinds);
    progress(`round ${report.rounds}: ${kinds.length} faults in ${since()}`);
    await load.stop();
    const problems = [...load.problems];
    const until = Date.now() + PATIENCE_MS;
    for (let open = await whatIsOpen(cluster, load, telegram); open; open = await whatIsOpen(cluster, load, telegram)) {
      if (Date.now() > until) {
        problems.push(`W6: after ${PATIENCE_MS / 1_000} s there are still ${open}`);
        break;
      }
      await sleep(500);
    }
    progress(`round ${report.rounds}: everything was over after ${since()}`);
    const facts = await gatherFacts(cluster, load, faults.all);
    const checked = checkNodes(facts, witness, telegram.accepted, telegram.complaints);
    problems.push(...checked.problems);
    for (const { kind } of faults.all) report.done[kind]++;
    for (const sums of [checked.counts, { operations: load.operations.length }]) add(report.counts, sums);
    add(report.hits, faults.hits);
    report.problems.push(...problems.map((problem) => `round ${report.rounds}: ${problem}`));
    if (problems.length === 0) return;
    progress(`round ${report.rounds}: ${problems.length} problems, the first: ${problems[0]}`);
    if (file) keepHistory(`${file}.round-${report.rounds}.jsonl`, facts, witness);
  } finally {
    await cluster?.remove();
    witness.close();
    await telegram.close();
  }
}

function begun({ file, resume, faults, seed }: NodesOptions): NodesReport {
  if (resume && file && existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as NodesReport;
  if (resume) throw new Error(`there is nothing to go on with: ${file} does not exist`);
  const done = Object.fromEntries(FAULT_KINDS.map((kind) => [kind, 0])) as Record<FaultKind, number>;
  return { seed, wanted: faults, rounds: 0, done, hits: {}, counts: {}, problems: [], seconds: 0 };
}

function keep({ file }: NodesOptions, report: NodesReport): void {
  if (!file) return;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.partial`, JSON.stringify(report));
  renameSync(`${file}.partial`, file);
}

/** Every operation, fault, question to the model, and event of a round in which something was wrong. */
function keepHistory(file: string, facts: Facts, witness: Witness): void {
  mkdirSync(dirname(file), { recursive: true });
  const lines = [
    ...facts.operations.map((operation) => ({ operation })),
    ...facts.faults.map((fault) => ({ fault })),
    ...witness.asked.map((asked) => ({ asked })),
    ...facts.events.map((event) => ({ event })),
    ...facts.runs.map((run) => ({ run })),
    ...facts.tasks.map((task) => ({ task })),
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

function add(sums: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(more)) sums[name] = (sums[name] ?? 0) + count;
}

function shuffled<T>(things: T[], random: () => number): T[] {
  for (let last = things.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [things[last], things[other]] = [things[other] as T, things[last] as T];
  }
  return things;
}
