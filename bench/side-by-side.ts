import { startPostgres } from "../test/postgres-server.ts";
import type { BenchOptions } from "./main.ts";
import { description as guildhall } from "./peers/guildhall.ts";
import { description as langgraph } from "./peers/langgraph.ts";
import { description as mastra } from "./peers/mastra.ts";
import { type Act, Place } from "./peers/place.ts";
import type { Ran, SystemName } from "./peers/side-by-side-worker.ts";
import type { Description, Probe } from "./peers/system.ts";
import { installPeers } from "./peers.ts";
import type { Figure, Section, Unit } from "./report.ts";
import { spread } from "./spread.ts";

const WRITERS = 4;
const NOTES_EACH = 25;
const RUNS = 20;
const APART_MS = 250;

const SYSTEMS: Readonly<Record<SystemName, Description>> = { langgraph, mastra, guildhall };

interface Finding {
  readonly bad: number;
  readonly words: readonly string[];
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

async function lostUpdates(place: Place, way: string, pattern: string): Promise<Finding> {
  await place.query("truncate effects");
  const refused = await place.together<number>(
    Array.from({ length: WRITERS }, (_, writer): Act => ({ do: "add", way, writer, times: NOTES_EACH })),
  );
  const all = WRITERS * NOTES_EACH;
  const counted = await place.run<number | null>({ do: "count", way });
  const left = counted ?? (await place.query("select from effects")).length;
  return { bad: all - left, words: [pattern, `${all} added, ${sum(refused)} times refused and tried again, ${left} there afterwards.`] };
}

async function isolation(place: Place, { isolation }: Description): Promise<Finding> {
  const probes = await place.run<readonly Probe[]>({ do: "probe" });
  const told = probes.map(({ asked, leaked }) => `${asked}: ${leaked.length === 0 ? "nothing foreign" : `also ${leaked.join(", ")}`}.`);
  return { bad: sum(probes.map(({ leaked }) => leaked.length)), words: [isolation, ...told] };
}

async function doubleResume(place: Place, way: string, pattern: string): Promise<Finding> {
  await place.query("truncate effects");
  const runs = Array.from({ length: RUNS }, (_, index) => `double-${way.replaceAll(" ", "-")}-${index}`);
  await place.run({ do: "suspend", way, runs });
  const said = await place.together<readonly string[]>(
    ["one", "two"].map((by): Act => ({ do: "resume", way, runs, by, apartMs: APART_MS })),
  );
  const rows =
    (await place.run<readonly Ran[] | null>({ do: "effects", way })) ??
    (await place.query<Ran>("select run, count(*)::int as times from effects group by run"));
  const twice = rows.filter((row) => row.times > 1).length;
  const never = RUNS - rows.length;
  const told = [...Map.groupBy(said.flat(), (answer) => answer)].map(([answer, all]) => `${all.length} × ${answer}`).join(", ");
  return {
    bad: twice + never,
    words: [
      pattern,
      `${RUNS} runs, each resumed by two processes at once: the step ran twice in ${twice}, never in ${never}. They were told: ${told}.`,
    ],
  };
}

async function zombie(place: Place, { takeOver }: Description): Promise<Finding> {
  const run = "zombie-run";
  const results = (): Promise<Readonly<Record<string, string>>> => place.run({ do: "results", run });
  const first = place.start<string>({ do: "work", run, by: "zombie" });
  await first.ready;
  first.freeze();
  const successor = await place.run<string>({ do: "take over", run, by: "successor" });
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

type Part = (place: Place, description: Description) => Promise<readonly (Finding & { readonly name?: string })[]>;

async function inEachWay(
  ways: Readonly<Record<string, string>>,
  run: (name: string, pattern: string) => Promise<Finding>,
): Promise<(Finding & { readonly name: string })[]> {
  const found: (Finding & { readonly name: string })[] = [];
  for (const [name, pattern] of Object.entries(ways)) found.push({ name, ...(await run(name, pattern)) });
  return found;
}

const PARTS: Readonly<
  Record<string, { readonly title: string; readonly unit: Unit; readonly notes: readonly string[]; readonly run: Part }>
> = {
  "lost-updates": {
    title: "Lost updates",
    unit: "lost",
    notes: [`${WRITERS} processes add ${NOTES_EACH} notes each to one shared thing, as fast as they can.`],
    run: (place, { ways }) => inEachWay(ways, (name, pattern) => lostUpdates(place, name, pattern)),
  },
  isolation: {
    title: "Prefix isolation",
    unit: "leaked",
    notes: ["Names that begin alike, and names that contain the separator: does one see the other's things?"],
    run: async (place, description) => [await isolation(place, description)],
  },
  "double-resume": {
    title: "Double resume",
    unit: "run twice",
    notes: ["A run waits for approval; two processes approve it at the same moment. How often does the step behind it run?"],
    run: (place, { resumes }) => inEachWay(resumes, (name, pattern) => doubleResume(place, name, pattern)),
  },
  zombie: {
    title: "Zombie writer",
    unit: "let through",
    notes: ["A worker is stopped (SIGSTOP) in the middle, a successor takes over and finishes, the worker is woken and writes its result."],
    run: async (place, description) => [await zombie(place, description)],
  },
};

/** Counts what goes wrong; nothing is timed, so there are no rounds. */
export async function run({ parts, progress }: BenchOptions): Promise<Section[]> {
  const unknown = parts.filter((part) => !PARTS[part]);
  if (unknown.length > 0) throw new Error(`there is no part ${unknown.join(", ")}; there are ${Object.keys(PARTS).join(", ")}`);
  installPeers(progress);
  const server = await startPostgres({ fsync: "on", synchronous_commit: "on" });
  const places = new Map<SystemName, Place>();
  try {
    for (const system of Object.keys(SYSTEMS) as SystemName[]) places.set(system, await Place.make(server.url, system));
    const sections: Section[] = [];
    for (const [name, part] of Object.entries(PARTS)) {
      if (parts.length > 0 && !parts.includes(name)) continue;
      const figures: Figure[] = [];
      for (const [system, place] of places) {
        const description = SYSTEMS[system];
        progress(`side by side, ${name}: ${description.name}`);
        for (const finding of await part.run(place, description))
          figures.push({
            name: [description.name, finding.name].filter(Boolean).join(": "),
            unit: part.unit,
            value: spread([finding.bad]),
            words: finding.words,
            ...(system === "guildhall" && { goal: { atMost: 0 } }),
          });
      }
      sections.push({ title: part.title, notes: part.notes, figures });
    }
    const versions = Object.values(SYSTEMS).map(({ name, version }) => `${name} ${version()}`);
    const durability = "All on one PostgreSQL with fsync and synchronous_commit on, a database each.";
    return sections.map((section, index) => (index > 0 ? section : { ...section, notes: [...versions, durability, ...section.notes] }));
  } finally {
    for (const place of places.values()) await place.close();
    await server.remove();
  }
}
