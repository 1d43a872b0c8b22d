import { monitorEventLoopDelay } from "node:perf_hooks";
import { DatabaseSync } from "node:sqlite";
import { openStore, type Store } from "../../src/store/store.ts";
import { serve } from "../child.ts";
import { countFsyncs } from "../fsync-shim.ts";
import { quantile } from "../spread.ts";

export interface WritesTask {
  readonly side: "store" | "raw";
  readonly path: string;
  /** Store: closed-loop writers. Raw: rows per transaction. */
  readonly width: number;
  readonly writes: number;
}

export interface WritesResult {
  readonly perSecond: number;
  readonly fsyncsPerWrite: number | null;
  /** Of the acknowledgement, in milliseconds; only the store acknowledges. */
  readonly p50: number | null;
  readonly p99: number | null;
  readonly loopDelayP99: number | null;
}

const VALUE = "x".repeat(100);
const SUBJECT = ["bench", "entries"] as const;
const DATA = { key: "bench", size: VALUE.length };
/** Untimed at the start, so that neither side is charged for compiling its code. */
const WARM_UP = 1 / 4;

await serve<WritesTask, WritesResult>(async (task) => {
  const store = await openStore(`sqlite:${task.path}`);
  await store.transact("bench table", async (tx) => {
    await tx.run`create table bench_entries (id integer primary key, key text not null, value text not null, at bigint not null)`;
  });
  const warmUp = Math.ceil((task.writes * WARM_UP) / task.width) * task.width;
  let result: WritesResult;
  if (task.side === "store") {
    await writeThroughStore(store, warmUp, task.width);
    result = await writeThroughStore(store, task.writes, task.width);
    await store.close();
  } else {
    await store.close();
    result = writeRaw(task, warmUp);
  }
  checkRows(task.path, warmUp + task.writes);
  return result;
});

async function writeThroughStore(store: Store, writes: number, writers: number): Promise<WritesResult> {
  const latencies = new Float64Array(writes);
  let begun = 0;
  const write = async (): Promise<void> => {
    while (begun < writes) {
      const mine = begun++;
      const asked = performance.now();
      await store.transact("bench write", async (tx) => {
        await tx.run`insert into bench_entries (key, value, at) values (${`key-${mine}`}, ${VALUE}, now_ms())`;
        await store.ledger.append(tx, { type: "turn.completed", actor: "bench", subject: SUBJECT, data: DATA });
      });
      latencies[mine] = performance.now() - asked;
    }
  };
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const fsyncsBefore = countFsyncs();
  const started = performance.now();
  await Promise.all(Array.from({ length: writers }, write));
  const seconds = (performance.now() - started) / 1_000;
  const fsyncsAfter = countFsyncs();
  loop.disable();
  latencies.sort();
  return {
    perSecond: writes / seconds,
    fsyncsPerWrite: fsyncsAfter === null ? null : (fsyncsAfter - (fsyncsBefore ?? 0)) / writes,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    // The histogram holds the time between two of its samples: the millisecond it asked for, and the delay.
    loopDelayP99: Math.max(0, loop.percentile(99) / 1e6 - 1),
  };
}

/** The very same rows with nothing in between: as fast as this disk and this SQLite go at that transaction size. */
function writeRaw(task: WritesTask, warmUp: number): WritesResult {
  const db = new DatabaseSync(task.path);
  db.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000;",
  );
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const entry = db.prepare("insert into bench_entries (key, value, at) values (?, ?, ?)");
  const event = db.prepare("insert into ledger (at, type, actor, caused_by, subject, data) values (?, ?, ?, ?, ?, ?)");
  const subject = SUBJECT.map((element) => `${element}/`).join("");
  const write = (writes: number): void => {
    for (let index = 0; index < writes; ) {
      begin.run();
      for (const end = Math.min(writes, index + task.width); index < end; index++) {
        entry.run(`key-${index}`, VALUE, Date.now());
        event.run(Date.now(), "turn.completed", "bench", null, subject, JSON.stringify(DATA));
      }
      commit.run();
    }
  };
  write(warmUp);
  const fsyncsBefore = countFsyncs();
  const started = performance.now();
  write(task.writes);
  const seconds = (performance.now() - started) / 1_000;
  const fsyncsAfter = countFsyncs();
  db.close();
  const fsyncsPerWrite = fsyncsAfter === null ? null : (fsyncsAfter - (fsyncsBefore ?? 0)) / task.writes;
  return { perSecond: task.writes / seconds, fsyncsPerWrite, p50: null, p99: null, loopDelayP99: null };
}

function checkRows(path: string, expected: number): void {
  const db = new DatabaseSync(path, { readOnly: true });
  const { entries, events } = db
    .prepare("select (select count(*) from bench_entries) as entries, (select count(*) from ledger) as events")
    .get() as {
    entries: number;
    events: number;
  };
  db.close();
  if (entries !== expected || events !== expected)
    throw new Error(`expected ${expected} entries and events, found ${entries} and ${events}`);
}
