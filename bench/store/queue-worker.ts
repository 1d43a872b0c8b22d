import { EventEmitter } from "node:events";
import pg from "pg";
import { openStore } from "../../src/store/store.ts";
import type { Claim } from "../../src/store/work-queue.ts";
import { serve } from "../child.ts";
import { JobTable } from "./job-table.ts";

export interface QueueTask {
  readonly side: "guildhall" | "graphile";
  readonly url: string;
  readonly schema: string;
  readonly jobs: number;
  readonly concurrency: number;
  readonly connections: number;
  /** Jobs per statement; 1 is unbatched. */
  readonly batch: number;
}

export interface QueueResult {
  readonly enqueuedPerSecond: number;
  readonly perSecond: number;
}

const LEASE_MS = 60_000;

await serve<QueueTask, QueueResult>((task) => (task.side === "guildhall" ? guildhall(task) : graphileWorker(task)));

async function guildhall(task: QueueTask): Promise<QueueResult> {
  const store = await openStore(`${task.url}?schema=${task.schema}&connections=${task.connections}`);
  const enqueuedPerSecond = await enqueueAll(task, (count) =>
    store.transact(
      "bench enqueue",
      async (tx) => {
        for (let index = 0; index < count; index++) await store.queue.enqueue(tx, { kind: "bench", payload: { index } });
      },
      "locked",
    ),
  );
  const table = await JobTable.open(task.url, `"${task.schema}".work`, task.jobs);
  const handle = async (_payload: unknown): Promise<void> => {};
  const started = performance.now();
  const settle = async (claimed: readonly Claim[]): Promise<void> => {
    const settled = await store.queue.settleAll(claimed);
    if (settled.size !== claimed.length) throw new Error(`${claimed.length} claimed, ${settled.size} settled`);
  };
  // The next is claimed while the last is being settled, as the peer does; at most one is on its way.
  const work = async (owner: string): Promise<void> => {
    let settling = Promise.resolve();
    while (true) {
      const claimed = await store.queue.claim(owner, task.batch, LEASE_MS);
      await settling;
      if (claimed.length === 0) return;
      for (const { payload } of claimed) await handle(payload);
      settling = settle(claimed);
    }
  };
  await Promise.all(Array.from({ length: task.concurrency }, (_, index) => work(`worker-${index}`)));
  await table.untilEmpty();
  const perSecond = task.jobs / ((performance.now() - started) / 1_000);
  await table.close();
  await store.close();
  return { enqueuedPerSecond, perSecond };
}

async function graphileWorker(task: QueueTask): Promise<QueueResult> {
  process.env.NO_LOG_SUCCESS = "1";
  const { graphile, quietPool, silent, BATCHED } = await import("./graphile.ts");
  const pool = quietPool(new pg.Pool({ connectionString: task.url, max: task.connections }));
  const utils = await graphile.makeWorkerUtils({ pgPool: pool, schema: task.schema, logger: silent });
  await utils.migrate();
  const enqueuedPerSecond = await enqueueAll(task, (count) =>
    count === 1
      ? utils.addJob("bench", { index: 0 })
      : utils.addJobs(Array.from({ length: count }, (_, index) => ({ identifier: "bench", payload: { index } }))),
  );
  await utils.release();
  const table = await JobTable.open(task.url, `"${task.schema}"._private_jobs`, task.jobs);
  const events = new EventEmitter();
  let left = task.jobs;
  const handled = new Promise<void>((resolve) => events.on("job:complete", () => --left === 0 && resolve()));
  let started = 0;
  // Its pool begins to work as soon as it is started: connecting and reading the schema come before and are not timed.
  events.once("pool:create", () => {
    started = performance.now();
  });
  const runner = await graphile.run({
    pgPool: pool,
    schema: task.schema,
    logger: silent,
    events,
    noHandleSignals: true,
    parsedCronItems: [],
    taskList: { bench: async () => {} },
    preset: { worker: { concurrentJobs: task.concurrency, maxPoolSize: task.connections, ...(task.batch > 1 ? BATCHED : {}) } },
  });
  await handled;
  // It does not wait for the completion of one job before it takes the next: the last ones may still be on their way.
  await table.untilEmpty();
  const perSecond = task.jobs / ((performance.now() - started) / 1_000);
  await runner.stop();
  await table.close();
  await pool.end();
  return { enqueuedPerSecond, perSecond };
}

async function enqueueAll(task: QueueTask, enqueue: (count: number) => Promise<unknown>): Promise<number> {
  const started = performance.now();
  let left = task.jobs;
  const produce = async (): Promise<void> => {
    while (left > 0) {
      const count = Math.min(left, task.batch);
      left -= count;
      await enqueue(count);
    }
  };
  await Promise.all(Array.from({ length: task.concurrency }, produce));
  return task.jobs / ((performance.now() - started) / 1_000);
}
