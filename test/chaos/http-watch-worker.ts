import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { readServerSentEvents } from "../../src/client/server-sent-events.ts";
import type { PoolChange } from "../../src/contract/pools.ts";
import { POOL, type Watched, type WatchPlan } from "./http-records.ts";

/** Watches the pool from its beginning on, goes on after the last event it has seen whatever breaks, and writes down what it is shown. */
const plan = JSON.parse(process.argv[2] as string) as WatchPlan;
const EVENTS_PER_CONNECTION = 7;
let last = "0";
let connections = 0;

async function connect(): Promise<void> {
  const url = plan.urls[connections++ % plan.urls.length];
  const stop = new AbortController();
  const headers = { authorization: `Bearer ${plan.token}`, "last-event-id": last };
  const response = await fetch(`${url}/api/pools/${POOL}/watch`, { headers, signal: stop.signal });
  if (!response.ok) throw new Error(`${response.status}`);
  let events = 0;
  for await (const { id, data } of readServerSentEvents(response.body as ReadableStream<Uint8Array>)) {
    if (id === null) continue;
    const { seq, type, data: changed } = JSON.parse(data) as PoolChange;
    if (String(seq) !== id) throw new Error(`event ${seq} came with the number ${id}`);
    const watched: Watched = {
      seq,
      type,
      keys: changed.keys.map(({ key, version, deleted }) => ({ key, version, ...(deleted ? { deleted } : {}) })),
    };
    writeSync(1, `${JSON.stringify(watched)}\n`);
    last = id;
    if (changed.keys.some(({ key }) => key === plan.last)) process.exit(0);
    // A connection of one's own accord ended is one more place where an event could be lost.
    if (++events === EVENTS_PER_CONNECTION) stop.abort();
  }
}

while (true) {
  await connect().catch(() => {});
  await sleep(20);
}
