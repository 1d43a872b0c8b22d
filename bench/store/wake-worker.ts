import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { openStore, type Store } from "../../src/store/store.ts";
import { serve, whenTold } from "../child.ts";

export interface WakeTask {
  readonly queue: "guildhall" | "graphile";
  /** `both`: producer and consumer in one process, as with an embedded database. */
  readonly role: "produce" | "consume" | "both";
  readonly location: string;
  readonly schema: string;
  readonly items: number;
}

/** From the moment before the enqueueing call to the claimed item in the consumer's hand, in milliseconds. */
export type WakeResult = readonly number[];

/** Apart, so that every item finds the consumer waiting; uneven, so that no timer falls into step with them. */
const PAUSE_MS = 15;
const PAUSE_SPREAD_MS = 10;
const LEASE_MS = 60_000;

await serve<WakeTask, WakeResult>((task) => (task.queue === "guildhall" ? guildhall(task) : graphileWorker(task)));

/** The same for all processes of one machine. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

async function produce(items: number, enqueue: (at: number) => Promise<unknown>): Promise<void> {
  for (let item = 0; item < items; item++) {
    await sleep(PAUSE_MS + Math.random() * PAUSE_SPREAD_MS);
    await enqueue(now());
  }
}

async function guildhall(task: WakeTask): Promise<WakeResult> {
  const store = await openStore(task.location);
  const enqueue = (at: number) =>
    store.transact("bench enqueue", (tx) => store.queue.enqueue(tx, { kind: "bench", payload: { at } }), "locked");
  const latencies: number[] = [];
  const consuming = task.role === "produce" ? undefined : consume(store, task.items, latencies);
  await whenTold();
  if (task.role !== "consume") await produce(task.items, enqueue);
  await consuming;
  await store.close();
  return latencies;
}

async function consume(store: Store, items: number, latencies: number[]): Promise<void> {
  const never = new AbortController().signal;
  // Wakes are waited for with timers that do not keep the process alive; a server's listener would.
  const alive = setInterval(() => {}, 1_000);
  while (latencies.length < items) {
    const seen = store.queue.version();
    const claimed = await store.queue.claim("bench", 1, LEASE_MS);
    const at = now();
    for (const { payload } of claimed) latencies.push(at - (payload as { at: number }).at);
    if (claimed.length > 0) await store.queue.settleAll(claimed);
    else await store.queue.wait(seen, never);
  }
  clearInterval(alive);
}

async function graphileWorker(task: WakeTask): Promise<WakeResult> {
  const { graphile, quietPool, silent } = await import("./graphile.ts");
  const pool = quietPool(new pg.Pool({ connectionString: task.location, max: 10 }));
  const options = { pgPool: pool, schema: task.schema, logger: silent };
  const utils = await graphile.makeWorkerUtils(options);
  await utils.migrate();
  const latencies: number[] = [];
  if (task.role === "produce") {
    await whenTold();
    await produce(task.items, (at) => utils.addJob("bench", { at }));
  } else {
    const all = Promise.withResolvers<void>();
    const bench = async (payload: unknown): Promise<void> => {
      latencies.push(now() - (payload as { at: number }).at);
      if (latencies.length === task.items) all.resolve();
    };
    const runner = await graphile.run({ ...options, noHandleSignals: true, parsedCronItems: [], taskList: { bench } });
    await whenTold();
    await all.promise;
    await runner.stop();
  }
  await utils.release();
  await pool.end();
  return latencies;
}
