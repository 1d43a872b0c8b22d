import pg from "pg";
import { startPostgres } from "../test/postgres-server.ts";
import { startChild } from "./child.ts";
import type { BenchOptions } from "./main.ts";
import { description as langgraph } from "./peers/langgraph.ts";
import { description as mastra } from "./peers/mastra.ts";
import type { SideResult, SideTask, SystemName } from "./peers/side-by-side-worker.ts";
import type { Description, Probe } from "./peers/system.ts";
import { installPeers } from "./peers.ts";
import type { Figure, Section, Unit } from "./report.ts";
import { spread } from "./spread.ts";

const WRITERS = 4;
const NOTES_EACH = 25;
const RUNS = 20;
const APART_MS = 250;

const SYSTEMS: Readonly<Record<SystemName, Description>> = { langgraph, mastra };
type Act = SideTask["act"];

/** One database of its own per system, on one server that syncs every commit. */
class Bench {
  readonly #system: SystemName;
  readonly #url: string;

  constructor(system: SystemName, url: string) {
    this.#system = system;
    this.#url = url;
  }

  start<Result extends SideResult>(act: Act) {
    return startChild<Result>("peers/side-by-side-worker.ts", { system: this.#system, url: this.#url, act } satisfies SideTask);
  }

  run<Result extends SideResult>(act: Act): Promise<Result> {
    return this.start<Result>(act).result;
  }

  /** Starts them all, waits until all of them are set up, and lets them go at once. */
  async together<Result extends SideResult>(acts: readonly Act[]): Promise<Result[]> {
    const children = acts.map((act) => this.start<Result>(act));
    for (const child of children) await child.ready;
    for (const child of children) child.go();
    return Promise.all(children.map((child) => child.result));
  }

  async query<Row>(text: string): Promise<Row[]> {
    const client = new pg.Client(this.#url);
    await client.connect();
    try {
      return (await client.query(text)).rows as Row[];
    } finally {
      await client.end();
    }
  }
}

interface Finding {
  readonly bad: number;
  readonly words: readonly string[];
}

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

async function lostUpdates(bench: Bench, way: string, pattern: string): Promise<Finding> {
  await bench.query("truncate effects");
  const refused = await bench.together<number>(
    Array.from({ length: WRITERS }, (_, writer): Act => ({ do: "add", way, writer, times: NOTES_EACH })),
  );
  const all = WRITERS * NOTES_EACH;
  const counted = await bench.run<number | null>({ do: "count", way });
  const left = counted ?? (await bench.query("select from effects")).length;
  return { bad: all - left, words: [pattern, `${all} added, ${sum(refused)} times refused and tried again, ${left} there afterwards.`] };
}

async function isolation(bench: Bench, { isolation }: Description): Promise<Finding> {
  const probes = await bench.run<readonly Probe[]>({ do: "probe" });
  const told = probes.map(({ asked, leaked }) => `${asked}: ${leaked.length === 0 ? "nothing foreign" : `also ${leaked.join(", ")}`}.`);
  return { bad: sum(probes.map(({ leaked }) => leaked.length)), words: [isolation, ...told] };
}

async function doubleResume(bench: Bench, { resume }: Description): Promise<Finding> {
  await bench.query("truncate effects");
  const runs = Array.from({ length: RUNS }, (_, index) => `double-${index}`);
  await bench.run({ do: "suspend", runs });
  const said = await bench.together<readonly string[]>(["one", "two"].map((by): Act => ({ do: "resume", runs, by, apartMs: APART_MS })));
  const rows = await bench.query<{ run: string; times: number }>("select run, count(*)::int as times from effects group by run");
  const twice = rows.filter((row) => row.times > 1).length;
  const never = RUNS - rows.length;
  const answers = Map.groupBy(said.flat(), (answer) => answer);
  const told = [...answers].map(([answer, all]) => `${all.length} × ${answer}`).join(", ");
  return {
    bad: twice + never,
    words: [
      resume,
      `${plural(RUNS, "run")}, each resumed by two processes at once: ${twice} paid twice, ${never} never. They were told: ${told}.`,
    ],
  };
}

async function zombie(bench: Bench, { takeOver }: Description): Promise<Finding> {
  const run = "zombie-run";
  const results = (): Promise<Readonly<Record<string, string>>> => bench.run({ do: "results", run });
  const first = bench.start<string>({ do: "work", run, by: "zombie" });
  await first.ready;
  first.freeze();
  const successor = await bench.run<string>({ do: "take over", run, by: "successor" });
  const before = await results();
  first.wake();
  first.go();
  const told = await first.result;
  const after = await results();
  const inWords = (all: Readonly<Record<string, string>>): string =>
    Object.entries(all)
      .map(([place, by]) => `${place}: ${by}`)
      .join(", ");
  return {
    bad: Object.values(after).filter((by) => by === "zombie").length,
    words: [takeOver, `The successor: ${successor} (${inWords(before)}).`, `The zombie, woken: ${told} (${inWords(after)}).`],
  };
}

type Part = (bench: Bench, description: Description) => Promise<readonly (Finding & { readonly name?: string })[]>;

const PARTS: Readonly<
  Record<string, { readonly title: string; readonly unit: Unit; readonly notes: readonly string[]; readonly run: Part }>
> = {
  "lost-updates": {
    title: "Lost updates",
    unit: "lost",
    notes: [`${WRITERS} processes add ${NOTES_EACH} notes each to one shared thing, as fast as they can.`],
    run: async (bench, { ways }) => {
      const found: (Finding & { name: string })[] = [];
      for (const [name, pattern] of Object.entries(ways)) found.push({ name, ...(await lostUpdates(bench, name, pattern)) });
      return found;
    },
  },
  isolation: {
    title: "Prefix isolation",
    unit: "leaked",
    notes: ["Names that begin alike, and names that contain the separator: does one see the other's things?"],
    run: async (bench, description) => [await isolation(bench, description)],
  },
  "double-resume": {
    title: "Double resume",
    unit: "run twice",
    notes: ["A run waits for approval; two processes approve it at the same moment. How often does the step behind it run?"],
    run: async (bench, description) => [await doubleResume(bench, description)],
  },
  zombie: {
    title: "Zombie writer",
    unit: "let through",
    notes: ["A worker is stopped (SIGSTOP) in the middle, a successor takes over and finishes, the worker is woken and writes its result."],
    run: async (bench, description) => [await zombie(bench, description)],
  },
};

/** Counts what goes wrong; nothing is timed, so there are no rounds. */
export async function run({ parts, progress }: BenchOptions): Promise<Section[]> {
  const unknown = parts.filter((part) => !PARTS[part]);
  if (unknown.length > 0) throw new Error(`there is no part ${unknown.join(", ")}; there are ${Object.keys(PARTS).join(", ")}`);
  installPeers(progress);
  const server = await startPostgres({ fsync: "on", synchronous_commit: "on" });
  try {
    const benches = new Map<SystemName, Bench>();
    for (const system of Object.keys(SYSTEMS) as SystemName[]) benches.set(system, await makeBench(server.url, system));
    const sections: Section[] = [];
    for (const [name, part] of Object.entries(PARTS)) {
      if (parts.length > 0 && !parts.includes(name)) continue;
      const figures: Figure[] = [];
      for (const [system, bench] of benches) {
        const description = SYSTEMS[system];
        progress(`side by side, ${name}: ${description.name}`);
        for (const finding of await part.run(bench, description))
          figures.push({
            name: [description.name, finding.name].filter(Boolean).join(": "),
            unit: part.unit,
            value: spread([finding.bad]),
            words: finding.words,
          });
      }
      sections.push({ title: part.title, notes: part.notes, figures });
    }
    const versions = Object.values(SYSTEMS).map(({ name, version }) => `${name} ${version()}`);
    const durability = "All on one PostgreSQL with fsync and synchronous_commit on, a database each.";
    return sections.map((section, index) => (index > 0 ? section : { ...section, notes: [...versions, durability, ...section.notes] }));
  } finally {
    await server.remove();
  }
}

async function makeBench(server: string, system: SystemName): Promise<Bench> {
  const client = new pg.Client(server);
  await client.connect();
  await client.query(`create database ${system}`);
  await client.end();
  const url = new URL(server);
  url.pathname = `/${system}`;
  const bench = new Bench(system, url.toString());
  await bench.query("create table effects (run text not null, by text not null)");
  // Alone, so that nobody else makes the same tables at the same time.
  await bench.run({ do: "suspend", runs: [] });
  return bench;
}
