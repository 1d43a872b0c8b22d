import { DatabaseSync } from "node:sqlite";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { ReadLog } from "../../src/records/pools/read-log.ts";
import { serve } from "../child.ts";
import { author, openPools, POOL } from "./opened.ts";

/**
 * `raw`: a prepared statement that finds the current version by its key. `row`: one that knows the version, so a single table by its
 * primary key. `operator`: nobody whose reads are recorded. `agent`: outside a turn, recorded once a minute
 * for each version. `run`: in a turn, collected and written with the turn's next commit. `first`: outside a turn, every version for
 * the first time, so that each read waits for its record.
 */
export type ReadSide = "raw" | "row" | "operator" | "agent" | "run" | "first";

export interface PoolReadsTask {
  readonly side: ReadSide;
  readonly path: string;
  readonly entries: number;
  readonly reads: number;
  /** For `run`: reads before each commit. For `first`: readers at once. */
  readonly width: number;
}

const VALUE = { text: "x".repeat(100) };
const BATCH = 100;

await serve<PoolReadsTask, { perSecond: number }>(async (task) => {
  const { store, pools } = await openPools(`sqlite:${task.path}`);
  for (let from = 0; from < task.entries; from += BATCH)
    await pools.write(
      OPERATOR,
      POOL,
      Array.from({ length: BATCH }, (_, index) => ({ key: `key-${from + index}`, value: VALUE })),
    );
  const key = (index: number): string => `key-${(index * 7919) % task.entries}`;
  const raw = new DatabaseSync(task.path, { readOnly: true });
  const statement = raw.prepare(
    `select v.pool, v.key, v.version, v.value, v.agent, v.at, v.expires_at from pool_keys h
     join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version where h.pool = ? and h.key = ?`,
  );
  const byVersion = raw.prepare(
    "select pool, key, version, value, agent, at, expires_at from pool_versions where pool = ? and key = ? and version = ?",
  );
  const through = (caller: Parameters<typeof pools.read>[0]) => async (from: number, to: number) => {
    for (let index = from; index < to; index++) expectEntry(await pools.read(caller, POOL, key(index)));
  };
  const sides: Readonly<Record<ReadSide, (from: number, to: number) => Promise<void>>> = {
    raw: async (from, to) => {
      for (let index = from; index < to; index++) expectEntry(statement.get(POOL, key(index)));
    },
    row: async (from, to) => {
      for (let index = from; index < to; index++) expectEntry(byVersion.get(POOL, key(index), 1));
    },
    operator: through(OPERATOR),
    agent: through(author(0)),
    run: async (from, to) => {
      const caller = author(0, `run-${from}`);
      const reads = new ReadLog();
      for (let index = from; index < to; index++) {
        expectEntry(await pools.read(caller, POOL, key(index), { reads }));
        if ((index + 1) % task.width === 0) await pools.write(caller, POOL, [{ key: `result-${index}`, value: VALUE }], { reads });
      }
    },
    first: async (from, to) => {
      let next = from;
      const read = async (): Promise<void> => {
        while (next < to) {
          const index = next++;
          // Each reader identity comes to each entry once.
          expectEntry(await pools.read(author(Math.floor(index / task.entries)), POOL, `key-${index % task.entries}`));
        }
      };
      await Promise.all(Array.from({ length: task.width }, read));
    },
  };
  const warmUp = task.reads / 4;
  if (task.side === "agent") await sides.agent(0, task.entries);
  await sides[task.side](0, warmUp);
  const started = performance.now();
  await sides[task.side](warmUp, warmUp + task.reads);
  const perSecond = task.reads / ((performance.now() - started) / 1_000);
  const recorded = (raw.prepare("select count(*) as count from pool_reads").get() as { count: number }).count;
  const expected = { raw: 0, row: 0, operator: 0, agent: task.entries, run: null, first: warmUp + task.reads }[task.side];
  if (expected === null ? recorded === 0 : recorded !== expected)
    throw new Error(`${task.side}: ${recorded} reads recorded, not ${expected}`);
  raw.close();
  await store.close();
  return { perSecond };
});

function expectEntry(entry: unknown): void {
  if (entry === undefined) throw new Error("an entry is missing");
}
