import { DatabaseSync } from "node:sqlite";
import { serve } from "../child.ts";
import { quantile } from "../spread.ts";
import { author, openPools, POOL } from "./opened.ts";

export interface PoolWritesTask {
  readonly side: "pools" | "raw";
  /** `new`: every write makes an entry. `replace`: every write replaces an entry, naming the version it replaces. */
  readonly kind: "new" | "replace";
  readonly path: string;
  /** Pools: closed-loop writers, each an identity. Raw: writes per transaction. */
  readonly width: number;
  readonly writes: number;
}

export interface PoolWritesResult {
  readonly perSecond: number;
  /** Of the acknowledgement, in milliseconds; only the pools acknowledge. */
  readonly p50: number | null;
  readonly p99: number | null;
}

const VALUE = { text: "x".repeat(100) };
const TEXT = JSON.stringify(VALUE);
/** Untimed at the start, so that neither side is charged for compiling its code. */
const WARM_UP = 1 / 4;

await serve<PoolWritesTask, PoolWritesResult>(async (task) => {
  const { store, pools } = await openPools(`sqlite:${task.path}`);
  const warmUp = Math.ceil((task.writes * WARM_UP) / task.width) * task.width;
  // Each writer has its keys to itself and takes them in turn: 0 is the version of what is not there yet.
  const perWriter = task.kind === "new" ? Math.ceil((warmUp + task.writes) / task.width) : 50;
  const place = (index: number) => {
    const turn = Math.floor(index / task.width);
    return { writer: index % task.width, key: `key-${index % task.width}-${turn % perWriter}`, version: Math.floor(turn / perWriter) };
  };
  const writeThroughPools = async (from: number, to: number): Promise<Float64Array> => {
    const latencies = new Float64Array(to - from);
    const work = async (writer: number): Promise<void> => {
      const caller = author(writer);
      for (let index = from + writer; index < to; index += task.width) {
        const { key, version } = place(index);
        const asked = performance.now();
        await pools.write(caller, POOL, [{ key, value: VALUE, ifVersion: version === 0 ? null : version }]);
        latencies[index - from] = performance.now() - asked;
      }
    };
    await Promise.all(Array.from({ length: task.width }, (_, writer) => work(writer)));
    return latencies;
  };
  let result: PoolWritesResult;
  if (task.side === "pools") {
    await writeThroughPools(0, warmUp);
    const started = performance.now();
    const latencies = await writeThroughPools(warmUp, warmUp + task.writes);
    const perSecond = task.writes / ((performance.now() - started) / 1_000);
    latencies.sort();
    result = { perSecond, p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) };
    await store.close();
  } else {
    await store.close();
    result = { perSecond: writeRaw(task, place, warmUp), p50: null, p99: null };
  }
  check(task, warmUp + task.writes);
  return result;
});

/** The very same rows with nothing in between and nothing looked up: as fast as this disk and this SQLite go at that transaction size. */
function writeRaw(
  task: PoolWritesTask,
  place: (index: number) => { writer: number; key: string; version: number },
  warmUp: number,
): number {
  const db = new DatabaseSync(task.path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;");
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const event = db.prepare("insert into ledger (at, type, actor, caused_by, subject, data) values (?, 'pool.written', ?, null, ?, ?)");
  const version = db.prepare(
    `insert into pool_versions (pool, key, version, value, size, agent, run, external, at, seq, read_mark)
     values ('${POOL}', ?, ?, ?, ?, ?, '', 0, ?, ?, 0)`,
  );
  const newKey = db.prepare(`insert into pool_keys (pool, key, last_version, current_version) values ('${POOL}', ?, ?, ?)`);
  const nextKey = db.prepare(`update pool_keys set last_version = ?, current_version = ? where pool = '${POOL}' and key = ?`);
  const usage = db.prepare(`insert into pool_usage (pool, agent, bytes, entries) values ('${POOL}', ?, ?, 1)
    on conflict (pool, agent) do update set bytes = bytes + excluded.bytes, entries = entries + 1`);
  const write = (from: number, to: number): void => {
    for (let index = from; index < to; ) {
      begin.run();
      for (const end = Math.min(to, index + task.width); index < end; index++) {
        const { writer, key, version: before } = place(index);
        const agent = `agent-${writer}`;
        const now = Date.now();
        const data = JSON.stringify({ keys: [{ key, version: before + 1, size: TEXT.length, label: "trusted" }] });
        const { lastInsertRowid } = event.run(now, agent, `pool/${POOL}/`, data);
        version.run(key, before + 1, TEXT, TEXT.length, agent, now, lastInsertRowid);
        if (before > 0) nextKey.run(before + 1, before + 1, key);
        else {
          newKey.run(key, 1, 1);
          usage.run("", TEXT.length);
          usage.run(agent, TEXT.length);
        }
      }
      commit.run();
    }
  };
  write(0, warmUp);
  const started = performance.now();
  write(warmUp, warmUp + task.writes);
  const perSecond = task.writes / ((performance.now() - started) / 1_000);
  db.close();
  return perSecond;
}

function check(task: PoolWritesTask, writes: number): void {
  const db = new DatabaseSync(task.path, { readOnly: true });
  const found = db
    .prepare(
      `select (select count(*) from pool_versions) as versions, (select count(*) from ledger where type = 'pool.written') as events,
        (select sum(last_version) from pool_keys) as heads, (select count(*) from pool_keys) as keys,
        (select entries from pool_usage where agent = '') as counted, (select sum(entries) from pool_usage where agent <> '') as by_author`,
    )
    .get() as Record<string, number>;
  db.close();
  const { versions, events, heads, keys, counted, by_author } = found;
  if (versions !== writes || events !== writes || heads !== writes || counted !== keys || by_author !== keys)
    throw new Error(`${task.side}: expected ${writes} versions and events, found ${JSON.stringify(found)}`);
}
