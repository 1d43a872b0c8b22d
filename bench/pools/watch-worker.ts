import { setTimeout as sleep } from "node:timers/promises";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { serve, whenTold } from "../child.ts";
import { author, type Opened, openPools, POOL } from "./opened.ts";

export interface WatchTask {
  /** `both`: writer and watchers in one process, as with an embedded database. */
  readonly role: "write" | "watch" | "both";
  readonly location: string;
  readonly writes: number;
  readonly watchers: number;
}

/** From the moment before the writing call to the change in a watcher's hand, in milliseconds. */
export type WatchResult = readonly number[];

/** Apart, so that every write finds the watchers waiting; uneven, so that no timer falls into step with them. */
const PAUSE_MS = 15;
const PAUSE_SPREAD_MS = 10;

await serve<WatchTask, WatchResult>(async (task) => {
  const opened = await openPools(task.location);
  const stop = new AbortController();
  const watching =
    task.role === "write" ? [] : await Promise.all(Array.from({ length: task.watchers }, (_, index) => watch(opened, task, index, stop)));
  const received = Promise.all(watching.map((all) => all()));
  // What waits for changes has timers that do not keep the process alive; a server's listener would.
  const alive = setInterval(() => {}, 1_000);
  await whenTold();
  if (task.role !== "watch") await write(opened, task.writes);
  const latencies = (await received).flat();
  clearInterval(alive);
  stop.abort();
  await opened.store.close();
  return latencies;
});

/** The same for all processes of one machine. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The key says when it was written: it is in the change, the value is not. */
async function write({ pools }: Opened, writes: number): Promise<void> {
  for (let index = 0; index < writes; index++) {
    await sleep(PAUSE_MS + Math.random() * PAUSE_SPREAD_MS);
    await pools.write(OPERATOR, POOL, [{ key: `${index} ${now()}`, value: index }]);
  }
}

async function watch({ pools }: Opened, { writes }: WatchTask, index: number, stop: AbortController): Promise<() => Promise<number[]>> {
  const changes = await pools.watch(author(index), POOL, undefined, stop.signal);
  return async () => {
    const latencies: number[] = [];
    for await (const { data } of changes) {
      const at = now();
      const [order, written] = (data.keys[0]?.key ?? "").split(" ");
      if (Number(order) !== latencies.length) throw new Error(`change ${order} came at place ${latencies.length}`);
      latencies.push(at - Number(written));
      if (latencies.length === writes) break;
    }
    return latencies;
  };
}
