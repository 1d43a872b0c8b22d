import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Dispatcher } from "../../src/drivers/dispatch/dispatcher.ts";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { quiet } from "../turn-parts.ts";

const LEASE_MS = 2_000;

/** On SQLite whoever writes is alone, and nobody holds a row for long. */
describe("claims on PostgreSQL", () => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = postgresPlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  // Whoever stands still for the time of a lease loses all.
  test("one that a transaction holds for long keeps none of the others from being renewed, and is not lost by that", {
    retry: 2,
  }, async () => {
    const ends = new AbortController();
    const [began, lost]: [ClaimedWork[], unknown[]] = [[], []];
    await store.transact(
      "add",
      async (tx) => {
        for (const payload of ["held", "free"]) await store.queue.enqueue(tx, { kind: "turn", payload });
      },
      "locked",
    );
    const handler = async (item: ClaimedWork, gone: AbortSignal): Promise<void> => {
      began.push(item);
      gone.addEventListener("abort", () => lost.push(item.payload));
      await sleep(60_000, undefined, { signal: AbortSignal.any([gone, ends.signal]) }).catch(() => {});
    };
    const node = new Dispatcher({
      queue: store.queue,
      owner: "node",
      handlers: { turn: handler },
      log: quiet,
      limit: () => 8,
      leaseMs: LEASE_MS,
    });
    node.start();
    await expect.poll(() => began.length, { timeout: 10_000 }).toBe(2);
    const held = began.find(({ payload }) => payload === "held") as ClaimedWork;
    const hold = (ms: number): Promise<void> =>
      store.transact(
        "hold",
        async (tx) => {
          await store.queue.guard(tx, held);
          await sleep(ms);
        },
        "locked",
      );
    // Past a renewal, and not to the end of the lease.
    await hold(LEASE_MS / 2);
    expect(lost).toEqual([]);
    // Past the end of every lease that is not renewed meanwhile.
    await hold(LEASE_MS * 1.5);
    expect(lost).not.toContain("free");
    ends.abort();
    await node.stop(1_000);
  });
});
