import { startPostgres } from "../test/postgres-server.ts";
import { runChild } from "./child.ts";
import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import type { Figure, Goal, Section, Unit } from "./report.ts";
import { quantile, ratios, spread } from "./spread.ts";
import type { DaemonTask, PhaseResult } from "./turns/daemon-worker.ts";

const SESSIONS = 64;
const AGENTS = 200;
/** Until the compiler has seen every path: some two thousand turns. */
const WARM_UP_MS = 12_000;
const SHORT_WARM_UP_MS = 3_000;
const MEASURED_MS = 6_000;
const FAIR_MS = 15_000;
const COMMITS = 1_000;
const OVERHEAD_GOAL: Goal = { atMost: 5 };
/** Of an even distribution 1; where one gets everything, 1 through their number. */
const EVEN: Goal = { atLeast: 0.95 };

const PHASES = [
  { what: "one message at a time, no tool", sessions: 1, tool: false, warmUpMs: WARM_UP_MS },
  { what: "one message at a time, one call of a tool", sessions: 1, tool: true, warmUpMs: WARM_UP_MS },
  { what: `${SESSIONS} conversations at once, no tool`, sessions: SESSIONS, tool: false, warmUpMs: SHORT_WARM_UP_MS },
  { what: `${SESSIONS} conversations at once, one call of a tool`, sessions: SESSIONS, tool: true, warmUpMs: SHORT_WARM_UP_MS },
] as const;

interface Round {
  readonly commits: { readonly p50: number; readonly p99: number; readonly perSecond: number };
  readonly phases: readonly PhaseResult[];
}

async function rounds(
  name: string,
  store: () => string | null,
  { rounds: count, progress }: BenchOptions,
  folder: string,
): Promise<Round[]> {
  const done: Round[] = [];
  for (let round = 1; round <= count; round++) {
    progress(`turns, ${name}, round ${round} of ${count}`);
    const commits = await runChild<Round["commits"]>("turns/commits-worker.ts", { folder, commits: COMMITS });
    const phases = PHASES.map(({ what: _, ...phase }) => ({ ...phase, sessionsPerAgent: 0, ms: MEASURED_MS }));
    const task: DaemonTask = { folder, store: store(), agents: 1, phases };
    done.push({ commits, phases: await runChild<PhaseResult[]>("turns/daemon-worker.ts", task) });
  }
  return done;
}

function section(title: string, done: readonly Round[], goals: boolean): Section {
  const raw = spread(done.map(({ commits }) => commits.perSecond));
  const figures = PHASES.flatMap(({ what, sessions }, phase): Figure[] => {
    const each = done.map(({ phases }) => phases[phase] as PhaseResult);
    const figure = (name: string, unit: Unit, value: (result: PhaseResult) => number, more: Partial<Figure> = {}): Figure => ({
      name: `  ${name}`,
      unit,
      value: spread(each.map(value)),
      ...more,
    });
    const perSecond = each.map(({ load }) => load.perSecond);
    const rate: Figure = {
      name: what,
      unit: "/s",
      value: spread(perSecond),
      against: { name: "raw durable commits", value: raw },
      ratio: ratios(
        perSecond,
        done.map(({ commits }) => commits.perSecond),
      ),
    };
    const shown = [rate];
    if (sessions === 1)
      shown.push(
        figure("message committed to reply committed, p50", "ms", ({ overhead }) => overhead?.p50 ?? 0),
        figure("p99", "ms", ({ overhead }) => overhead?.p99 ?? 0, goals ? { goal: OVERHEAD_GOAL } : {}),
      );
    return [
      ...shown,
      figure("message sent to reply seen, p50", "ms", ({ load }) => load.p50),
      figure("p99", "ms", ({ load }) => load.p99),
      figure("delay of the event loop, p99", "ms", ({ loop }) => loop.p99),
      figure("largest", "ms", ({ loop }) => loop.max),
      figure("processor time of the daemon for a turn", "ms", ({ cpuPerTurn }) => cpuPerTurn),
    ];
  });
  const commit = spread(done.map(({ commits }) => commits.p50));
  const slowCommit = spread(done.map(({ commits }) => commits.p99));
  return {
    title,
    notes: [
      "A model in the daemon's process that answers at once; everything else over HTTP. Its time is taken off where it says message committed to reply committed.",
      `A raw durable commit of one row on the same disk took ${commit.median.toFixed(2)} ms, p99 ${slowCommit.median.toFixed(2)} ms.`,
    ],
    figures,
  };
}

async function sqlite(options: BenchOptions, folder: string): Promise<Section> {
  return section("Turns on SQLite", await rounds("SQLite", () => null, options, folder), true);
}

async function postgres(options: BenchOptions, folder: string): Promise<Section> {
  const server = await startPostgres({ fsync: "on", synchronous_commit: "on" });
  let schemas = 0;
  try {
    return section(
      "Turns on PostgreSQL",
      await rounds("PostgreSQL", () => `${server.url}?schema=turns_${schemas++}`, options, folder),
      false,
    );
  } finally {
    await server.remove();
  }
}

/** 200 agents with two conversations each, and one with fifty. */
async function fair({ rounds: count, progress }: BenchOptions, folder: string): Promise<Section> {
  const done: PhaseResult[] = [];
  for (let round = 1; round <= count; round++) {
    progress(`turns, fairness, round ${round} of ${count}`);
    const phase = { sessions: 50, tool: false, sessionsPerAgent: 2, warmUpMs: SHORT_WARM_UP_MS, ms: FAIR_MS };
    const [result] = await runChild<PhaseResult[]>("turns/daemon-worker.ts", {
      folder,
      store: null,
      agents: AGENTS,
      phases: [phase],
    } satisfies DaemonTask);
    done.push(result as PhaseResult);
  }
  const sorted = done.map(({ load }) => load.byAgent.toSorted((a, b) => a - b));
  const figure = (name: string, unit: Unit, value: (result: PhaseResult, shares: readonly number[]) => number, goal?: Goal): Figure => ({
    name,
    unit,
    value: spread(done.map((result, round) => value(result, sorted[round] as readonly number[]))),
    ...(goal ? { goal } : {}),
  });
  const average = (shares: readonly number[]): number => shares.reduce((sum, one) => sum + one, 0) / shares.length;
  return {
    title: `Fairness: ${AGENTS} agents busy at once on SQLite`,
    notes: [`${AGENTS} agents with two conversations each that wait for their reply, and one agent with fifty; 64 turns at once.`],
    figures: [
      figure("turns of all", "/s", ({ load }) => load.perSecond),
      figure(
        "Jain's index of the agents' shares",
        "index",
        (_, shares) => (AGENTS * average(shares) ** 2) / average(shares.map((one) => one * one)) / AGENTS,
        EVEN,
      ),
      figure("slowest to fastest", "ratio", (_, shares) => (shares[0] as number) / (shares.at(-1) as number)),
      figure("turns of an agent, median", "turns", (_, shares) => quantile(shares, 0.5)),
      figure("turns of the one with fifty", "turns", ({ load }) => load.main),
      figure("message sent to reply seen, p50", "ms", ({ load }) => load.p50),
      figure("  p99", "ms", ({ load }) => load.p99),
      figure("delay of the event loop, p99", "ms", ({ loop }) => loop.p99),
      figure("  largest", "ms", ({ loop }) => loop.max),
    ],
  };
}

export function run(options: BenchOptions): Promise<Section[]> {
  return runParts("turns", { sqlite, postgres, fair }, options);
}
