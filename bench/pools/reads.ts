import { join } from "node:path";
import { runChild } from "../child.ts";
import type { BenchOptions } from "../main.ts";
import type { Figure, Section } from "../report.ts";
import { interleave, ratios, spread } from "../spread.ts";
import type { PoolReadsTask, ReadSide } from "./reads-worker.ts";

const ENTRIES = 10_000;
const PER_COMMIT = 20;
const READERS = 64;

/** Reads of current entries, by key, one after another; `first` by many readers at once, as each waits for its record. */
export async function reads({ rounds, progress }: BenchOptions, folder: string): Promise<Section> {
  let files = 0;
  const side =
    (side: ReadSide, reads: number, width = 1) =>
    async (): Promise<number> => {
      const task: PoolReadsTask = { side, path: join(folder, `pool-reads-${files++}.db`), entries: ENTRIES, reads, width };
      return (await runChild<{ perSecond: number }>("pools/reads-worker.ts", task)).perSecond;
    };
  const results = await interleave(
    {
      agent: side("agent", 100_000),
      raw: side("raw", 200_000),
      operator: side("operator", 100_000),
      row: side("row", 200_000),
      run: side("run", 40_000, PER_COMMIT),
      first: side("first", 20_000, READERS),
    },
    rounds,
    (line) => progress(`pools reads, ${line}`),
  );
  const compared = (name: string, ours: readonly number[], peer = "raw, the current version of a key", theirs = results.raw): Figure => ({
    name,
    unit: "/s",
    value: spread(ours),
    against: { name: peer, value: spread(theirs) },
    ratio: ratios(ours, theirs),
  });
  return {
    title: "Reads of entries",
    notes: [`SQLite, ${ENTRIES.toLocaleString("en")} entries, by pool and key.`],
    figures: [
      { ...compared("an agent outside a run, seen within the minute", results.agent), goal: { atLeast: 0.5 } },
      compared("an agent outside a run, seen within the minute", results.agent, "raw, one row by its primary key", results.row),
      { ...compared("an operator", results.operator), goal: { atLeast: 0.5 } },
      compared(`in a run, recorded with a commit after ${PER_COMMIT} reads (the commits included)`, results.run),
      compared(`an agent outside a run, for the first time, ${READERS} readers (each read recorded)`, results.first),
    ],
  };
}
