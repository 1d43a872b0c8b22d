import { statSync } from "node:fs";
import { join } from "node:path";
import { startPostgres } from "../test/postgres-server.ts";
import { runChild } from "./child.ts";
import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import type { Figure, Section } from "./report.ts";
import { spread } from "./spread.ts";
import type { FillTask } from "./tasks/fill-worker.ts";
import type { Raw, RawTask } from "./tasks/raw-worker.ts";
import type { Measured, SearchTask } from "./tasks/search-worker.ts";

const TASKS = 1_000_000;
const A_PART = 100_000;
const QUERIES = 300;
/** PostgreSQL alone takes seconds for a word that many rows have. */
const RAW_QUERIES = 30;
const WORDS_MS = 20;
const ID_MS = 5;

async function sqlite(options: BenchOptions, folder: string): Promise<Section> {
  const path = join(folder, "tasks.db");
  return measure("SQLite", `sqlite:${path}`, options, () => `${(statSync(path).size / 2 ** 30).toFixed(1)} GiB`);
}

async function postgres(options: BenchOptions): Promise<Section> {
  const server = await startPostgres({ fsync: "off", shared_buffers: "1GB", max_wal_size: "4GB" });
  try {
    return await measure("PostgreSQL", `${server.url}?schema=tasks`, options, () => "");
  } finally {
    await server.remove();
  }
}

async function measure(database: string, location: string, options: BenchOptions, size: () => string): Promise<Section> {
  const { rounds, progress } = options;
  const rates: number[] = [];
  for (let from = 0; from < TASKS; from += A_PART) {
    const task: FillTask = { location, from, to: Math.min(TASKS, from + A_PART) };
    rates.push((await runChild<{ perSecond: number }>("tasks/fill-worker.ts", task)).perSecond);
    progress(`tasks, ${database}: ${task.to.toLocaleString("en")} written, ${Math.round(rates.at(-1) as number)} a second`);
  }
  const raws: Raw[] = [];
  const found: Measured[][] = [];
  for (let round = 1; round <= rounds; round++) {
    progress(`tasks, ${database}, round ${round} of ${rounds}`);
    const search: SearchTask = { location, tasks: TASKS, queries: QUERIES, seed: round };
    found.push(await runChild<Measured[]>("tasks/search-worker.ts", search));
    const raw: RawTask = { location, tasks: TASKS, queries: RAW_QUERIES };
    raws.push(await runChild<Raw>("tasks/raw-worker.ts", raw));
  }
  const rawOf = (key: keyof Raw) => spread(raws.map((raw) => raw[key]));
  const rawFor = (name: string): { readonly name: string; readonly value: ReturnType<typeof spread> } => {
    if (name.startsWith("beginning")) return { name: "raw: a row by its key, p99", value: rawOf("id") };
    if (name.includes("100,000")) return { name: "raw: 20 that have it, p99", value: rawOf("rare") };
    return { name: "raw: 20 newest that have a word of a third, p99", value: rawOf("common") };
  };
  const names = found[0]?.map(({ name }) => name) ?? [];
  const figures = names.map((name, index): Figure => {
    const each = found.map((round) => round[index] as Measured);
    const p50 = spread(each.map((one) => one.p50)).median;
    const cpu = spread(each.map((one) => one.cpu99)).median;
    return {
      name: `${name}, p99`,
      unit: "ms",
      value: spread(each.map((one) => one.p99)),
      against: rawFor(name),
      goal: { atMost: name.startsWith("beginning") ? ID_MS : WORDS_MS },
      words: [`p50 ${p50.toFixed(2)} ms, p99 of processor time ${cpu.toFixed(1)} ms, ${(each[0] as Measured).found.toFixed(1)} found`],
    };
  });
  return {
    title: `Search over ${TASKS.toLocaleString("en")} tasks on ${database}`,
    notes: [
      `The rows that opening and ending each leaves, written many at once (${Math.round(spread(rates).median).toLocaleString("en")} a second). ${size()}`,
      `20 hits with snippets. A ranked search of the database alone for a word in every third task: ${rawOf("ranked").median.toFixed(0)} ms.`,
    ],
    figures,
  };
}

export function run(options: BenchOptions): Promise<Section[]> {
  return runParts("tasks", { sqlite, postgres }, options);
}
