import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { SEED } from "../models/seed.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const TTL = 60_000;

interface Load {
  readonly weights: readonly number[];
  /** Items each tenant has at first, and how many come after each service, by tenant. */
  readonly backlog: number;
  readonly bursts: readonly (readonly [tenant: number, items: number])[];
  readonly slots: number;
}

const loads: fc.Arbitrary<Load> = fc.record({
  weights: fc.array(fc.constantFrom(0.5, 1, 1, 2, 4), { minLength: 2, maxLength: 6 }),
  backlog: fc.integer({ min: 20, max: 40 }),
  bursts: fc.array(fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 10 })), { maxLength: 10 }),
  slots: fc.integer({ min: 1, max: 4 }),
});

describe.each(PLACES)("tenants that wait for each other on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const send = (name: string, items: number, weight = 1, node = store) =>
    node.transact(
      "send",
      async (tx) => {
        for (let index = 0; index < items; index++) await node.queue.enqueue(tx, { kind: "turn", payload: name, tenant: { name, weight } });
      },
      "locked",
    );
  const serve = async (count: number): Promise<string[]> => {
    const served: string[] = [];
    while (served.length < count) {
      const taken = await store.queue.claim("me", 1, TTL);
      if (taken.length === 0) break;
      await store.queue.settleAll(taken);
      served.push(...taken.map((item) => item.payload as string));
    }
    return served;
  };
  const times = (served: readonly string[], name: string) => served.filter((one) => one === name).length;

  test("whoever sends one message waits for one of a thousand others, not for all of them", async () => {
    await send("busy", 1_000);
    await serve(3);
    await send("quiet", 1);
    expect(await serve(3)).toContain("quiet");
  });

  test("a tenant with twice the weight is served twice as often", async () => {
    await send("two", 60, 2);
    await send("one", 60, 1);
    const served = await serve(60);
    expect(times(served, "two")).toBeGreaterThanOrEqual(38);
    expect(times(served, "two")).toBeLessThanOrEqual(42);
  });

  test("work of nobody goes first, and does not turn the clock of the others back", async () => {
    await send("a", 10);
    await serve(5);
    await store.transact("nobody's", (tx) => store.queue.enqueue(tx, { kind: "turn", payload: "nobody" }));
    await send("b", 1);
    const served = await serve(4);
    expect(served[0]).toBe("nobody");
    expect(served).toContain("b");
  });

  test("whatever is asked: tenants that always have something waiting are served by their weights, and a newcomer soon", {
    timeout: 120_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(loads, async ({ weights, backlog, bursts, slots }) => {
        await store.transact("clear", (tx) => tx.run`delete from work`);
        // What was just removed counts for a moment: a queue does not know that nobody took it.
        await sleep(60);
        const names = weights.map((_, index) => `t${index}`);
        const left = new Map<string, number>();
        const sendTo = async (index: number, items: number) => {
          await send(names[index] as string, items, weights[index] as number);
          left.set(names[index] as string, (left.get(names[index] as string) ?? 0) + items);
        };
        for (const index of names.keys()) await sendTo(index, backlog);
        const served = new Map<string, number>(names.map((name) => [name, 0]));
        const running: ClaimedWork[] = [];
        const waiting = [...bursts];
        const total = backlog;
        for (let step = 0; step < total; step++) {
          const taken = await store.queue.claim("me", slots - running.length, TTL);
          running.push(...taken);
          for (const item of taken) {
            served.set(item.payload as string, (served.get(item.payload as string) as number) + 1);
            left.set(item.payload as string, (left.get(item.payload as string) as number) - 1);
          }
          // Whichever: services take different times.
          const done = running.splice((step * 7) % running.length, 1);
          await store.queue.settleAll(done);
          const burst = step % 3 === 0 ? waiting.pop() : undefined;
          if (burst) await sendTo(burst[0] % names.length, burst[1]);
          if (names.some((name) => left.get(name) === 0)) break;
        }
        // By how much each has been served for its weight: no two of those that always waited are further apart than one item of each.
        const shares = names.map((name, index) => (served.get(name) as number) / (weights[index] as number));
        const apart = 2 * Math.max(...weights.map((weight) => 1 / weight)) + 1e-9;
        for (const [index, share] of shares.entries())
          for (const [other, theirs] of shares.entries())
            expect(Math.abs(share - theirs), `${names[index]} and ${names[other]}: ${JSON.stringify([...served])}`).toBeLessThanOrEqual(
              apart,
            );
        await store.queue.settleAll(running);

        await send("newcomer", 1, 1);
        const bound = weights.reduce((sum, weight) => sum + Math.ceil(weight) + 1, 1);
        expect(await serve(bound)).toContain("newcomer");
      }),
      { seed: SEED, numRuns: makePlace.name === "sqlitePlace" ? 40 : 5 },
    );
  });

  // On SQLite a transaction is alone.
  test.skipIf(makePlace.name === "sqlitePlace")("many who send at once for one tenant do not push another aside", async () => {
    const together = 6;
    for (let round = 0; round < 5; round++) {
      let added = 0;
      const all = Promise.withResolvers<void>();
      const sendOne = () =>
        store.transact(
          "send",
          async (tx) => {
            await store.queue.enqueue(tx, { kind: "turn", payload: "loud", tenant: { name: "loud", weight: 1 } });
            if (++added === together) all.resolve();
            await all.promise;
          },
          "locked",
        );
      await Promise.all(Array.from({ length: together }, sendOne));
    }
    await send("quiet", 10);
    expect(times(await serve(20), "quiet")).toBeGreaterThanOrEqual(9);
  });

  test("turns that were held all come back in line, not in front of everybody", async () => {
    const lanes = Array.from({ length: 20 }, (_, index) => index);
    await store.transact("held", async (tx) => {
      for (const lane of lanes)
        await store.queue.enqueue(tx, { kind: "turn", payload: "held", lane: [`${lane}`], tenant: { name: "held", weight: 1 } });
    });
    const held = await store.queue.claim("me", 20, TTL);
    for (const item of held) await store.transact("park", (tx) => store.queue.park(tx, item, TTL));
    await send("other", 40);
    await serve(20);
    for (const item of held) await store.transact("unpark", (tx) => store.queue.unpark(tx, item.id));
    expect(times(await serve(20), "other")).toBeGreaterThanOrEqual(9);
  });

  test("what was handed back keeps its place in front", async () => {
    await send("a", 5);
    const [taken] = await store.queue.claim("me", 1, TTL);
    await send("b", 5);
    await serve(4);
    await store.queue.handBack([taken as ClaimedWork]);
    expect((await store.queue.claim("me", 1, TTL))[0]?.id).toBe(taken?.id);
  });

  test("what waits in a conversation is placed when its turn comes", async () => {
    const lane = (tenant: string, items: number) =>
      store.transact("lane", async (tx) => {
        for (let index = 0; index < items; index++)
          await store.queue.enqueue(tx, { kind: "turn", payload: tenant, lane: [tenant], tenant: { name: tenant, weight: 1 } });
      });
    await lane("a", 10);
    await lane("b", 10);
    expect(await serve(6)).toEqual(["a", "b", "a", "b", "a", "b"]);
  });

  describe("a claim without some tenants", () => {
    test("takes what the others have, however far behind it is", async () => {
      await send("full", 300, 100);
      await send("slow", 2, 0.01);
      const taken = await store.queue.claim("me", 5, TTL, ["turn"], ["full"]);
      expect(taken.map((item) => item.tenant)).toEqual(["slow"]);
      expect(await store.queue.claim("me", 5, TTL, ["turn"], ["full", "slow"])).toEqual([]);
      expect((await store.queue.claim("me", 5, TTL, ["turn"], ["full"])).map((item) => item.tenant)).toEqual(["slow"]);
      expect(await store.queue.claim("me", 5, TTL, ["turn"], ["full"])).toEqual([]);
      expect(await store.queue.claim("me", 5, TTL, ["turn"], ["slow"])).toHaveLength(5);
    });

    test("knows work that is nobody's", async () => {
      await store.transact("nobody's", (tx) => store.queue.enqueue(tx, { kind: "turn", payload: null }));
      await send("a", 1);
      expect((await store.queue.claim("me", 5, TTL, undefined, [null])).map((item) => item.tenant)).toEqual(["a"]);
      expect((await store.queue.claim("me", 5, TTL, undefined, ["a"])).map((item) => item.tenant)).toEqual([null]);
    });

    test("of many tenants takes each one's first", async () => {
      for (let index = 0; index < 30; index++) await send(`t${index}`, 1, 0.01);
      await send("full", 200, 100);
      const without = ["full", ...Array.from({ length: 10 }, (_, index) => `t${index}`)];
      const taken: string[] = [];
      for (let round = 0; round < 10; round++)
        taken.push(...(await store.queue.claim("me", 7, TTL, undefined, without)).map((item) => item.tenant as string));
      expect(taken.sort()).toEqual(Array.from({ length: 20 }, (_, index) => `t${index + 10}`).sort());
    });
  });
});
