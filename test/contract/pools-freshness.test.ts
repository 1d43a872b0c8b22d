import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Entry } from "../../src/contract/pools.ts";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import { ReadLog } from "../../src/records/pools/read-log.ts";
import type { Tx } from "../../src/store/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { agent, OPEN, poolsOn } from "./pool-callers.ts";

const [bob, carol] = [agent("bob", "r1"), agent("carol", "r2")];
const KEYS = ["a", "b", "plan", "own", "lapsed", "again", "result"];
const STALE = { code: "pool.stale" };

describe.each(PLACES)("what a write rests on, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  /** Two nodes. */
  let pools: Pools;
  let other: Pools;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    pools = await poolsOn(store, { house: { ...OPEN, keys: Object.fromEntries(KEYS.map((key) => [key, { policy: "last_write" }])) } });
    other = new Pools(await place.open());
  });
  afterEach(() => place.remove());

  const put = async (where: Pools, caller: typeof bob, key: string, value: unknown): Promise<Entry> =>
    (await where.write(caller, "house", [{ key, value }]))[0] as Entry;

  /** Runs a body, and keeps its transaction open until it is let go. */
  const heldOpen = <T>(body: (tx: Tx) => Promise<T>, end: (tx: Tx) => Promise<T>) => {
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const over = store.transact(
      "test",
      async (tx) => {
        await body(tx);
        begun.resolve();
        await go.promise;
        return end(tx);
      },
      "locked",
    );
    return { begun: Promise.race([begun.promise, over]), go: go.resolve, over };
  };
  /** Until it is done, if nothing keeps it waiting. */
  const unlessItWaits = (work: Promise<unknown>) =>
    Promise.race([work.catch(() => {}), new Promise((resolve) => setTimeout(resolve, 300))]);

  test.each([
    ["is there", true],
    ["is not there", false],
  ])("V4 V8 an entry that %s stays as it was read from the check to the commit", async (_how, isThere) => {
    if (isThere) await put(pools, carol, "plan", 1);
    const log = new ReadLog();
    await pools.read(bob, "house", "plan", { reads: log });
    const step = heldOpen<Entry | undefined>(
      async (tx) => {
        await pools.refuseStaleIn(tx, bob, [], log);
        return undefined;
      },
      async (tx) => (await pools.writeIn(tx, bob, "house", [{ key: "result", value: 1 }], { reads: log }))[0],
    );
    await step.begun;
    const change = put(other, carol, "plan", 2);
    await unlessItWaits(change);
    step.go();
    expect((await step.over)?.seq).toBeLessThan((await change).seq);
  });

  test("V4 V8 of two that rest on what the other writes, the one that waits for the other is refused", async () => {
    for (const key of ["a", "b"]) await put(pools, agent("alice"), key, "on duty");
    for (const [where, caller] of [
      [pools, bob],
      [other, carol],
    ] as const)
      for (const key of ["a", "b"]) expect(await where.read(caller, "house", key)).toMatchObject({ value: "on duty" });
    const first = heldOpen<unknown>(
      (tx) => pools.writeIn(tx, bob, "house", [{ key: "a", value: "off duty" }], { ifFresh: true }),
      async () => undefined,
    );
    await first.begun;
    const second = other.write(carol, "house", [{ key: "b", value: "off duty" }], { ifFresh: true }).catch((error: unknown) => error);
    await unlessItWaits(second);
    first.go();
    await first.over;
    expect(await second).toMatchObject({ ...STALE, details: { stale: [{ key: "a", read: 1, current: 2 }] } });
    expect(await pools.read(OPERATOR, "house", "b")).toMatchObject({ value: "on duty" });
  });

  test.skipIf(_name === "SQLite")(
    "V8 what is read while a write waits does not make the write fresh (on SQLite nothing comes in between)",
    async () => {
      for (const key of ["a", "b"]) await put(pools, agent("alice"), key, 1);
      for (const key of ["a", "b"]) await pools.read(bob, "house", key);
      const holder = heldOpen<unknown>(
        (tx) => pools.currentVersionsIn(tx, carol, "house", ["a"], true),
        async () => undefined,
      );
      await holder.begun;
      const write = other.write(bob, "house", [{ key: "result", value: 1 }], { ifFresh: true }).catch((error: unknown) => error);
      await unlessItWaits(write);
      await put(pools, carol, "b", 2);
      expect(await pools.read(bob, "house", "b")).toMatchObject({ version: 2 });
      holder.go();
      await holder.over;
      expect(await write).toMatchObject({ ...STALE, details: { stale: [{ key: "b", read: 1, current: 2 }] } });
    },
  );

  test("V8 whoever saw that there was nothing is stale when it wrote over what somebody else had put there", async () => {
    const log = new ReadLog();
    for (const key of ["plan", "own", "lapsed", "again"]) await pools.read(bob, "house", key, { reads: log });
    await put(other, carol, "plan", "carol's");
    for (const key of ["plan", "own", "own"]) await put(pools, bob, key, "bob's");
    // What somebody else had there was gone again: it has replaced nothing.
    await other.write(carol, "house", [{ key: "lapsed", value: 1, ttlMs: 1_000 }]);
    await put(other, carol, "again", 1);
    await other.write(carol, "house", [{ key: "again", remove: true }]);
    await place.elapse(2_000);
    for (const key of ["lapsed", "again"]) await put(pools, bob, key, "bob's");
    const stale = [{ key: "plan", read: 0, current: 2, diff: [{ path: "", after: "bob's" }] }];
    expect(await pools.freshness(bob, [], log)).toMatchObject({ fresh: false, stale });
    const write = pools.write(bob, "house", [{ key: "result", value: 1 }], { reads: log, ifFresh: true });
    await expect(write).rejects.toMatchObject(STALE);
    expect(await pools.freshness(bob, [], log)).toMatchObject({ stale: [{ key: "plan" }] });
  });

  test("V8 what one call of a run has read is not forgotten because another one commits", async () => {
    for (const key of ["a", "b"]) await put(pools, carol, key, 1);
    const log = new ReadLog();
    await pools.read(bob, "house", "a", { reads: log });
    const begun = Promise.withResolvers<void>();
    let last: Tx | undefined;
    const first = store
      .transact(
        "first call",
        async (tx) => {
          last = tx;
          await pools.writeIn(tx, bob, "house", [{ key: "x", value: 1 }], { reads: log });
          // On SQLite the second one runs after this body, and before the commit that both share.
          if (place.kind === "postgres") await begun.promise.then(() => unlessItWaits(second));
        },
        "locked",
      )
      .then(() => log.settled(last as Tx));
    const second: Promise<void> = store.transact(
      "second call",
      async (tx) => {
        await pools.read(bob, "house", "b", { reads: log });
        begun.resolve();
        await pools.writeIn(tx, bob, "house", [{ key: "y", value: 1 }], { reads: log });
        throw new Error("refused after all");
      },
      "locked",
    );
    await expect(second).rejects.toThrow("refused after all");
    await first;
    await put(other, carol, "b", 2);
    const write = pools.write(bob, "house", [{ key: "result", value: 1 }], { reads: log, ifFresh: true });
    await expect(write).rejects.toMatchObject({ ...STALE, details: { stale: [{ key: "b", read: 1, current: 2 }] } });
  });

  test("V4 V8 in a turn two that each rest on the absence of what the other writes cannot both commit, with a log or without", async () => {
    for (const [first, second, options] of [
      ["a", "b", () => ({})],
      ["plan", "own", () => ({ reads: new ReadLog() })],
    ] as const) {
      const [bobs, carols] = [options(), options()];
      for (const key of [first, second]) {
        expect(await pools.read(bob, "house", key, bobs)).toBeUndefined();
        expect(await other.read(carol, "house", key, carols)).toBeUndefined();
      }
      const outcomes = await Promise.allSettled([
        pools.write(bob, "house", [{ key: first, value: 1 }], { ifFresh: true, ...bobs }),
        other.write(carol, "house", [{ key: second, value: 1 }], { ifFresh: true, ...carols }),
      ]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      for (const outcome of outcomes) if (outcome.status === "rejected") expect(outcome.reason).toMatchObject(STALE);
      for (const caller of [bob, carol]) for (const key of [first, second]) await pools.read(caller, "house", key);
    }
  });

  test("V8 a run that has seen that an entry is gone is fresh, also once its reads are recorded", async () => {
    await put(pools, carol, "plan", 1);
    const log = new ReadLog();
    await pools.read(bob, "house", "plan", { reads: log });
    await pools.write(carol, "house", [{ key: "plan", remove: true }]);
    expect(await pools.read(bob, "house", "plan", { reads: log })).toBeUndefined();
    expect(await pools.freshness(bob, [], log)).toEqual({ fresh: true });
    await pools.write(bob, "house", [{ key: "note", value: 1 }], { reads: log });
    expect(await pools.freshness(bob, [], log)).toEqual({ fresh: true });
  });
});
