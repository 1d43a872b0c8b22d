import { statfsSync } from "node:fs";
import { join } from "node:path";
import { runChild } from "../child.ts";
import { buildFsyncShim } from "../fsync-shim.ts";
import type { BenchOptions } from "../main.ts";
import type { Figure, Section } from "../report.ts";
import { interleave, ratios, spread } from "../spread.ts";
import type { WritesResult, WritesTask } from "./writes-worker.ts";

const WRITERS = 64;
const MANY_WRITERS = 256;
const SLOW_FSYNC_MS = 2;
const TMPFS = 0x01021994;

/** One durable write: one transaction with one data row and one ledger event, acknowledged after its fsync. */
export async function writes({ rounds, progress }: BenchOptions, folder: string): Promise<Section> {
  const shim = buildFsyncShim(folder);
  let files = 0;
  const side =
    (task: Omit<WritesTask, "path">, delayMs = 0) =>
    (): Promise<WritesResult> =>
      runChild<WritesResult>(
        "store/writes-worker.ts",
        { ...task, path: join(folder, `writes-${files++}.db`) } satisfies WritesTask,
        typeof shim === "string" ? {} : shim.environment(delayMs),
      );
  const results = await interleave(
    {
      group: side({ side: "store", width: WRITERS, writes: 128_000 }),
      batch: side({ side: "raw", width: WRITERS, writes: 128_000 }),
      oneByOne: side({ side: "raw", width: 1, writes: 4_000 }),
      many: side({ side: "store", width: MANY_WRITERS, writes: 128_000 }),
      manyBatch: side({ side: "raw", width: MANY_WRITERS, writes: 128_000 }),
      whole: side({ side: "raw", width: 128_000, writes: 128_000 }),
    },
    rounds,
    (line) => progress(`store writes, ${line}`),
  );
  const rate = (list: readonly WritesResult[]): number[] => list.map((result) => result.perSecond);
  const compared = (name: string, ours: readonly WritesResult[], peer: string, theirs: readonly WritesResult[]): Figure => ({
    name,
    unit: "/s",
    value: spread(rate(ours)),
    against: { name: peer, value: spread(rate(theirs)) },
    ratio: ratios(rate(ours), rate(theirs)),
  });
  const pick = (name: string, list: readonly WritesResult[], key: "p50" | "p99" | "loopDelayP99"): Figure => ({
    name,
    unit: "ms",
    value: spread(list.map((result) => result[key] as number)),
  });
  const { group, batch, oneByOne, many, manyBatch, whole } = results;
  const figures: Figure[] = [
    { ...compared(`${WRITERS} writers`, group, `raw, ${WRITERS} per transaction`, batch), goal: { atLeast: 0.5 } },
    compared(`${WRITERS} writers`, group, "raw, one per transaction", oneByOne),
    compared(`${WRITERS} writers`, group, "raw, all in one transaction", whole),
    pick("  acknowledged p50", group, "p50"),
    pick("  acknowledged p99", group, "p99"),
    pick("  event-loop delay p99", group, "loopDelayP99"),
    compared(`${MANY_WRITERS} writers`, many, `raw, ${MANY_WRITERS} per transaction`, manyBatch),
    pick("  acknowledged p50", many, "p50"),
    pick("  acknowledged p99", many, "p99"),
    pick("  event-loop delay p99", many, "loopDelayP99"),
  ];
  const notes = ["SQLite, WAL, synchronous=FULL on both sides; a write is one data row and one ledger event."];
  if (statfsSync(folder).type === TMPFS) notes.push(`${folder} is in memory: syncing costs nothing there. Set TMPDIR to a disk.`);
  if (typeof shim === "string") {
    notes.push(`Fsyncs were neither counted nor slowed down: ${shim}.`);
    return { title: "Durable writes", notes, figures };
  }
  const slow = await interleave(
    {
      group: side({ side: "store", width: WRITERS, writes: 16_000 }, SLOW_FSYNC_MS),
      oneByOne: side({ side: "raw", width: 1, writes: 600 }, SLOW_FSYNC_MS),
    },
    rounds,
    (line) => progress(`store writes, fsync of ${SLOW_FSYNC_MS} ms, ${line}`),
  );
  const perWrite = (list: readonly WritesResult[]): number[] => list.map((result) => result.fsyncsPerWrite as number);
  figures.push(
    {
      name: `fsyncs, ${WRITERS} writers`,
      unit: "per write",
      value: spread(perWrite(group)),
      against: { name: "raw, one per transaction", value: spread(perWrite(oneByOne)) },
      goal: { atMost: 1 / 16 },
    },
    {
      ...compared(`${WRITERS} writers, fsync +${SLOW_FSYNC_MS} ms`, slow.group, "raw, one per transaction", slow.oneByOne),
      goal: { atLeast: 20 },
    },
    pick("  acknowledged p50", slow.group, "p50"),
    pick("  acknowledged p99", slow.group, "p99"),
  );
  return { title: "Durable writes", notes, figures };
}
