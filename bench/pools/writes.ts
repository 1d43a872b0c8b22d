import { join } from "node:path";
import { runChild } from "../child.ts";
import type { BenchOptions } from "../main.ts";
import type { Figure, Section } from "../report.ts";
import { interleave, ratios, spread } from "../spread.ts";
import type { PoolWritesResult, PoolWritesTask } from "./writes-worker.ts";

const WRITERS = 64;
const WRITES = 64_000;

/** One durable write of an entry: its version with provenance, its key's head, the quota's count, one ledger event. */
export async function writes({ rounds, progress }: BenchOptions, folder: string): Promise<Section> {
  let files = 0;
  const side = (task: Pick<PoolWritesTask, "side" | "kind">) => (): Promise<PoolWritesResult> =>
    runChild<PoolWritesResult>("pools/writes-worker.ts", {
      ...task,
      path: join(folder, `pool-writes-${files++}.db`),
      width: WRITERS,
      writes: WRITES,
    } satisfies PoolWritesTask);
  const results = await interleave(
    {
      made: side({ side: "pools", kind: "new" }),
      madeRaw: side({ side: "raw", kind: "new" }),
      replaced: side({ side: "pools", kind: "replace" }),
      replacedRaw: side({ side: "raw", kind: "replace" }),
    },
    rounds,
    (line) => progress(`pools writes, ${line}`),
  );
  const rate = (list: readonly PoolWritesResult[]): number[] => list.map((result) => result.perSecond);
  const compared = (name: string, ours: readonly PoolWritesResult[], theirs: readonly PoolWritesResult[]): Figure[] => [
    {
      name,
      unit: "/s",
      value: spread(rate(ours)),
      against: { name: `raw, ${WRITERS} per transaction`, value: spread(rate(theirs)) },
      ratio: ratios(rate(ours), rate(theirs)),
      goal: { atLeast: 0.4 },
    },
    { name: "  acknowledged p50", unit: "ms", value: spread(ours.map(({ p50 }) => p50 as number)) },
    { name: "  acknowledged p99", unit: "ms", value: spread(ours.map(({ p99 }) => p99 as number)) },
  ];
  return {
    title: "Durable writes of entries",
    notes: [
      "SQLite, WAL, synchronous=FULL on both sides, the same rows on both: version with author, head of the key, ledger event, usage of the quota.",
      "The raw side looks nothing up: no rules, no versions compared, no quota enforced.",
    ],
    figures: [
      ...compared(`${WRITERS} writers, new keys`, results.made, results.madeRaw),
      ...compared(`${WRITERS} writers, compare and set`, results.replaced, results.replacedRaw),
    ],
  };
}
