import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startPostgres } from "../test/postgres-server.ts";
import { Home } from "../test/scenarios/guildhall.ts";
import { runChild } from "./child.ts";
import type { LoadResult, LoadTask } from "./coordination/load.ts";
import { between, sampleMemory } from "./coordination/memory.ts";
import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import type { Figure, Section } from "./report.ts";
import { spread } from "./spread.ts";

const IDENTITIES = 100;
const IN_FLIGHT = 10_000;
const CONNECTIONS = 64;
/** Even numbers, so that there is a middle. PostgreSQL takes longer for each. */
const TURNS = { SQLite: 10, PostgreSQL: 4 };
const IDLE_MS = 1_500;
/** Of the last turn to the middle one. V8 collects its old space so seldom that it takes some turns until the heap has found its size. */
const FLAT = 1.1;

/** One daemon, asked over HTTP; one round, as it is long. */
async function measure(name: keyof typeof TURNS, config: string | undefined, progress: (line: string) => void): Promise<Section> {
  const turns = TURNS[name];
  const home = new Home(config);
  try {
    const daemon = await home.start();
    const { pid } = JSON.parse(readFileSync(join(home.path, "daemon.json"), "utf8")) as { pid: number };
    const memory = sampleMemory(pid);
    const ready = Date.now();
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const begun = Date.now();
    progress(`coordination, ${name}: ${IN_FLIGHT} claims and mails, ${turns} times over`);
    const task: LoadTask = {
      url: daemon.url,
      operator: daemon.token,
      identities: IDENTITIES,
      inFlight: IN_FLIGHT,
      connections: CONNECTIONS,
      turns,
    };
    const { latencies, marks } = await runChild<LoadResult>("coordination/load-worker.ts", task);
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const samples = memory.stop();
    await daemon.kill("SIGTERM");
    const mark = (turn: number): number => (turn === 0 ? marks.full : marks[`turn ${turn}`]) as number;
    const middle = between(samples, mark(turns / 2 - 1), mark(turns / 2));
    const end = between(samples, mark(turns - 1), mark(turns));
    const resident = (what: string, value: number): Figure => ({ name: `daemon's memory ${what}`, unit: "MiB", value: spread([value]) });
    return {
      title: `Coordination on ${name}`,
      notes: [
        `${IN_FLIGHT.toLocaleString("en")} claims held and ${IN_FLIGHT.toLocaleString("en")} mails received and not acked, all at once, by ${IDENTITIES} identities;`,
        `then ${turns} times: every claim renewed, every mail acked, a new one sent and received. ${CONNECTIONS} connections, each waits for its answer.`,
      ],
      figures: [
        ...latencies.flatMap(({ what, perSecond, p50, p99 }): Figure[] => [
          { name: what, unit: "/s", value: spread([perSecond]) },
          { name: "  p50", unit: "ms", value: spread([p50]) },
          { name: "  p99", unit: "ms", value: spread([p99]) },
        ]),
        resident("idle", between(samples, ready, begun)),
        resident("with everything in flight", between(samples, marks.full as number, mark(1))),
        ...Array.from({ length: turns }, (_, turn) => resident(`in turn ${turn + 1}`, between(samples, mark(turn), mark(turn + 1)))),
        {
          ...resident("at the end", end),
          against: { name: "in the middle", value: spread([middle]) },
          ratio: spread([end / middle]),
          goal: { atMost: FLAT },
        },
      ],
    };
  } finally {
    await home.remove();
  }
}

async function sqlite({ progress }: BenchOptions): Promise<Section> {
  return measure("SQLite", undefined, progress);
}

async function postgres({ progress }: BenchOptions): Promise<Section> {
  const server = await startPostgres({ fsync: "on", synchronous_commit: "on" });
  try {
    return await measure("PostgreSQL", `store: ${server.url}?schema=coordination\n`, progress);
  } finally {
    await server.remove();
  }
}

export function run(options: BenchOptions): Promise<Section[]> {
  return runParts("coordination", { sqlite, postgres }, options);
}
