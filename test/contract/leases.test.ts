import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { timesLeft } from "../../src/store/leases.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const NAME = ["account", "telegram", "default"];

describe.each(PLACES)("leases on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const acquire = async (holder: string, ttlMs = 10_000, node = store): Promise<number> => {
    const lease = await node.leases.acquire(NAME, holder, ttlMs);
    if (!lease.held) throw new Error(`held by ${lease.holder}`);
    return lease.fence;
  };

  test("one holder at a time, however many ask at once (L1)", async () => {
    const other = await place.open();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? store : other).leases.acquire(NAME, `h${index}`, 10_000)),
    );
    const winners = answers.filter((answer) => answer.held);
    expect(winners).toHaveLength(1);
    const holders = answers.flatMap((answer) => (answer.held ? [] : [answer.holder]));
    expect(new Set(holders).size).toBe(1);
  });

  test("a later holder has a larger fence, after expiry, after release, after a restart and after the name was forgotten (L1)", async () => {
    const fences = [await acquire("a")];
    await place.elapse(10_001);
    fences.push(await acquire("b"));
    await store.leases.release(NAME, fences[1] as number);
    fences.push(await acquire("c"));
    await store.close();
    store = await place.open();
    await place.elapse(10_001);
    fences.push(await acquire("d"));
    await place.elapse(100_000);
    expect(await store.leases.sweep(50_000)).toBe(1);
    fences.push(await acquire("e"));
    expect(fences).toEqual([...fences].sort((x, y) => x - y));
    expect(new Set(fences).size).toBe(fences.length);
  });

  test("a holder that was stopped past its time and goes on is refused (L2)", async () => {
    const old = await acquire("paused");
    await place.elapse(10_001);
    const current = await acquire("successor");
    const write = (fence: number) =>
      store.transact("write", async (tx) => {
        await store.leases.guard(tx, NAME, fence);
        await store.ledger.append(tx, { type: "daemon.started", actor: "holder", subject: [`${fence}`] });
      });
    await expect(write(old)).rejects.toMatchObject({ code: "fence.stale" });
    await write(current);
    expect((await store.ledger.read(0, 10)).map((event) => event.subject)).toEqual([[`${current}`]]);
  });

  test("an expired holder may not write, even if nobody has taken over yet", async () => {
    const fence = await acquire("late");
    await place.elapse(10_001);
    await expect(store.transact("write", (tx) => store.leases.guard(tx, NAME, fence))).rejects.toMatchObject({ code: "fence.stale" });
  });

  // On SQLite the machine that has the file has the only clock there is.
  test.skipIf(makePlace.name === "sqlitePlace")("a node whose clock is ten minutes off changes nothing (L3)", async () => {
    const fast = await place.open({ clock: { now: () => Date.now() + 600_000 } });
    const slow = await place.open({ clock: { now: () => Date.now() - 600_000 } });
    const fence = await acquire("slow", 10_000, slow);
    expect((await fast.leases.acquire(NAME, "fast", 10_000)).held).toBe(false);
    expect(await slow.leases.renew(NAME, fence, 10_000)).not.toBeNull();
    await place.elapse(10_001);
    expect(await slow.leases.renew(NAME, fence, 10_000)).toBeNull();
    expect((await fast.leases.acquire(NAME, "fast", 10_000)).held).toBe(true);
  });

  test("renewing extends a live lease and never revives a lost one (L5)", async () => {
    const fence = await acquire("a");
    await place.elapse(9_000);
    expect(await store.leases.renew(NAME, fence, 10_000)).not.toBeNull();
    await place.elapse(9_000);
    expect((await store.leases.acquire(NAME, "b", 10_000)).held).toBe(false);
    await place.elapse(1_001);
    expect(await store.leases.renew(NAME, fence, 10_000)).toBeNull();
    expect((await store.leases.acquire(NAME, "b", 10_000)).held).toBe(true);
  });

  test("a stale holder's release does nothing (L6)", async () => {
    const old = await acquire("a");
    await place.elapse(10_001);
    await acquire("b");
    expect(await store.leases.release(NAME, old)).toBe(false);
    expect((await store.leases.acquire(NAME, "c", 10_000)).held).toBe(false);
  });

  test("who acquires learns whether the last holder gave it back, or something of it may still go on", async () => {
    const isClean = async (): Promise<boolean> => {
      const lease = await store.leases.acquire(NAME, "next", 10_000);
      if (!lease.held) throw new Error(`held by ${lease.holder}`);
      fence = lease.fence;
      return lease.isClean;
    };
    let fence = 0;
    expect(await isClean()).toBe(true);
    await store.leases.release(NAME, fence);
    expect(await isClean()).toBe(true);
    await place.elapse(10_001);
    expect(await isClean()).toBe(false);
    await store.leases.abandon(NAME, fence - 1);
    expect((await store.leases.acquire(NAME, "other", 10_000)).held).toBe(false);
    await store.leases.abandon(NAME, fence);
    await expect(store.transact("write", (tx) => store.leases.guard(tx, NAME, fence))).rejects.toMatchObject({ code: "fence.stale" });
    expect(await isClean()).toBe(false);
    await store.leases.letGoOf(["next"]);
    expect(await isClean()).toBe(true);
    // Also when it has run out before: whoever is certainly dead leaves nothing behind.
    await place.elapse(10_001);
    await store.leases.letGoOf(["next"]);
    expect(await isClean()).toBe(true);
    await place.elapse(10_001);
    await store.leases.letGoOfAll();
    expect(await isClean()).toBe(true);
  });

  test("many are renewed at once: those that are held, and no others (L5)", async () => {
    const held = [];
    for (const [name, ttlMs] of [
      ["a", 10_000],
      ["b", 10_000],
      ["short", 1_000],
    ] as const) {
      const lease = await store.leases.acquire([name], "x", ttlMs);
      if (lease.held) held.push({ name: [name], fence: lease.fence });
    }
    const stranger = await store.leases.acquire(["stranger"], "y", 10_000);
    if (!stranger.held) throw new Error("not held");
    const [a, b, short] = held as [{ name: string[]; fence: number }, { name: string[]; fence: number }, { name: string[]; fence: number }];
    await store.leases.release(b.name, b.fence);
    await place.elapse(5_000);
    const asked = [...held, { name: ["stranger"], fence: a.fence }, { name: ["nobody"], fence: 1 }];
    expect(await store.leases.renewAll(asked, 60_000)).toEqual(new Set([a.fence]));
    const left = await timesLeft(store.read, [a.name, b.name, short.name, ["stranger"], ["nobody"]]);
    expect(left(a.name)).toBeGreaterThan(50_000);
    expect([b.name, short.name, ["nobody"]].map(left)).toEqual([0, 0, 0]);
    expect(left(["stranger"])).toBeLessThanOrEqual(5_000);
    expect(await store.leases.renewAll([], 1_000)).toEqual(new Set());
  });

  test.runIf(makePlace.name === "postgresPlace")(
    "renewing many waits for none that a transaction has in use, and that one can be renewed alone",
    async () => {
      const [busy, idle] = [await store.leases.acquire(["busy"], "x", 10_000), await store.leases.acquire(["idle"], "x", 10_000)];
      if (!busy.held || !idle.held) throw new Error("not held");
      const [guarded, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const writing = store.transact("write", async (tx) => {
        await store.leases.guard(tx, ["busy"], busy.fence);
        guarded.resolve();
        await done.promise;
      });
      await guarded.promise;
      const both = [
        { name: ["busy"], fence: busy.fence },
        { name: ["idle"], fence: idle.fence },
      ];
      expect(await store.leases.renewAll(both, 10_000)).toEqual(new Set([idle.fence]));
      const alone = store.leases.renew(["busy"], busy.fence, 10_000);
      done.resolve();
      await writing;
      expect(await alone).not.toBeNull();
    },
  );

  test("names that were released long ago are forgotten, those in use are not", async () => {
    for (const name of ["a", "b", "c"]) {
      const lease = await store.leases.acquire([name], "x", 10_000);
      if (lease.held && name !== "c") await store.leases.release([name], lease.fence);
    }
    await place.elapse(9_000);
    expect(await store.leases.sweep(20_000)).toBe(0);
    expect(await store.leases.sweep(5_000)).toBe(2);
    expect((await store.leases.acquire(["c"], "y", 10_000)).held).toBe(false);
  });

  test("names are lists: what only looks alike is another lease", async () => {
    expect((await store.leases.acquire(["a", "b"], "x", 10_000)).held).toBe(true);
    expect((await store.leases.acquire(["a/b"], "y", 10_000)).held).toBe(true);
    expect((await store.leases.acquire(["a"], "z", 10_000)).held).toBe(true);
  });

  test("a guard holds the lease until its transaction ends: nobody takes over in between", async () => {
    const fence = await acquire("a", 10_000);
    const other = await place.open();
    const order: string[] = [];
    const writing = store.transact("write", async (tx) => {
      await store.leases.guard(tx, NAME, fence);
      order.push("guarded");
      if (place.kind === "postgres") await new Promise((resolve) => setTimeout(resolve, 150));
      order.push("written");
    });
    while (order.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await place.elapse(10_001);
    await other.leases.acquire(NAME, "b", 10_000);
    order.push("taken over");
    await writing;
    expect(order).toEqual(["guarded", "written", "taken over"]);
  });
});
