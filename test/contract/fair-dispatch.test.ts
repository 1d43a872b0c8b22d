import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Dispatcher, type Handler } from "../../src/drivers/dispatch/dispatcher.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

/** On a busy machine. */
const WHILE = { timeout: 15_000, interval: 5 };
const quiet = { info: () => {}, warn: () => {}, error: () => {} };

describe.each(PLACES)("a node with many agents on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let node: Dispatcher | undefined;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(async () => {
    await node?.stop(0);
    node = undefined;
    await place.remove();
  });

  const send = (name: string, items: number, weight = 1) =>
    store.transact(
      "send",
      async (tx) => {
        for (let index = 0; index < items; index++)
          await store.queue.enqueue(tx, { kind: "turn", payload: name, lane: [name, `${index}`], tenant: { name, weight } });
      },
      "locked",
    );
  const start = (turn: Handler, limit: () => number, tenants = 2): void => {
    node = new Dispatcher({
      queue: store.queue,
      owner: "n",
      handlers: { turn },
      log: quiet,
      limit,
      tenants: () => tenants,
      leaseMs: 60_000,
    });
    node.start();
  };
  /** Settles after what `takes` says, and counts. */
  const counting = (counts: Map<string, number>, takes: () => number | Promise<unknown>): Handler => {
    return async (item, lost) => {
      const wait = takes();
      await (typeof wait === "number" ? sleep(wait, undefined, { signal: lost }).catch(() => {}) : wait);
      if (lost.aborted) return;
      await store.transact("settle", (tx) => store.queue.settle(tx, item), "locked");
      counts.set(item.tenant as string, (counts.get(item.tenant as string) ?? 0) + 1);
    };
  };

  test("whose turns take hours starts another's message at once", async () => {
    const begun: string[] = [];
    const hours: Handler = async (item, lost) => {
      begun.push(item.tenant as string);
      await sleep(3_600_000, undefined, { signal: lost }).catch(() => {});
    };
    await send("hog", 200);
    start(hours, () => 16);
    await vi.waitFor(() => expect(begun).toHaveLength(12), WHILE);
    await sleep(50);
    expect(begun).toHaveLength(12);
    for (const other of ["b", "c", "d"]) {
      await send(other, 1);
      await vi.waitFor(() => expect(begun).toContain(other), WHILE);
    }
    expect(begun.filter((name) => name === "hog")).toHaveLength(12);
  });

  test("whose slots are free again takes what was held back", async () => {
    const counts = new Map<string, number>();
    await send("a", 40);
    start(
      counting(counts, () => 2),
      () => 4,
    );
    await vi.waitFor(() => expect(counts.get("a")).toBe(40), WHILE);
  });

  test("takes up another limit while it runs", async () => {
    let limit = 1;
    let running = 0;
    let done = 0;
    let most = 0;
    const handler: Handler = async (item) => {
      most = Math.max(most, ++running);
      await sleep(20);
      running--;
      done++;
      await store.transact("settle", (tx) => store.queue.settle(tx, item), "locked");
    };
    await send("a", 200);
    start(handler, () => limit, 1);
    await vi.waitFor(() => expect(done).toBeGreaterThan(4), WHILE);
    expect(most).toBe(1);
    limit = 8;
    await vi.waitFor(() => expect(most).toBe(8), WHILE);
  });

  test("gives 200 that are busy at once the same share, and one with twice the weight two", { timeout: 60_000 }, async () => {
    const counts = new Map<string, number>();
    const names = Array.from({ length: 200 }, (_, index) => `agent${index}`);
    for (const name of names) await send(name, 12, name === "agent7" ? 2 : 1);
    start(
      counting(counts, () => 1 + Math.random() * 3),
      () => 64,
      200,
    );
    const done = () => [...counts.values()].reduce((sum, one) => sum + one, 0);
    await vi.waitFor(() => expect(done()).toBeGreaterThan(900), { timeout: 40_000, interval: 5 });
    const now = new Map(counts);
    await node?.stop(0);
    const others = names.filter((name) => name !== "agent7").map((name) => now.get(name) ?? 0);
    const average = others.reduce((sum, one) => sum + one, 0) / others.length;
    expect(Math.min(...others)).toBeGreaterThanOrEqual(average - 2);
    expect(Math.max(...others)).toBeLessThanOrEqual(average + 2);
    expect(now.get("agent7")).toBeGreaterThanOrEqual(1.5 * average);
  });

  test("lets one that floods it take nothing from others who wait for an answer each time", { timeout: 60_000 }, async () => {
    const counts = new Map<string, number>();
    await send("flood", 2_000);
    start(
      counting(counts, () => 2),
      () => 8,
    );
    const flooded = (): number => counts.get("flood") ?? 0;
    const letPass: number[] = [];
    for (let message = 1; message <= 30; message++) {
      const before = flooded();
      await send("quiet", 1);
      await vi.waitFor(() => expect(counts.get("quiet") ?? 0).toBe(message), { ...WHILE, interval: 1 });
      letPass.push(flooded() - before);
    }
    expect(flooded()).toBeLessThan(2_000);
    // In the order of arrival it would be nearly all of them at the first message.
    expect(letPass.sort((a, b) => a - b)[15]).toBeLessThan(100);
    expect(Math.max(...letPass)).toBeLessThan(1_000);
  });
});
