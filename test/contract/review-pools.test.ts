import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { VersionRef } from "../../src/contract/pools.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import type { Tx } from "../../src/store/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { agent, guest, makePool, OPEN, poolsOn } from "./pool-callers.ts";

const [alice, bob] = [agent("alice"), agent("bob")];

describe.each(PLACES)("pools under a second look, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const locked = <T>(body: (tx: Tx) => Promise<T>) => store.transact("test", body, "locked");
  const retract = (pools: Pools, caller: Caller, target: VersionRef) => locked((tx) => pools.retractIn(tx, caller, target, "wrong"));
  /** Holds a transaction open after its body until it is let go. */
  const heldOpen = (body: (tx: Tx) => Promise<unknown>) => {
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const over = locked(async (tx) => {
      await body(tx);
      begun.resolve();
      await go.promise;
    });
    return { begun: begun.promise, go: go.resolve, over };
  };
  const soon = (ms = 150) => new Promise((resolve) => setTimeout(resolve, ms));

  test("V6 no page of a list or snapshot names a key that is not the asker's to read", async () => {
    const hidden = { readers: [], writers: ["alice"] };
    const pools = await poolsOn(store, { house: { readers: ["bob"], writers: ["alice"], keys: { b: hidden, c: hidden, e: hidden } } });
    for (const key of ["a", "b", "c", "d", "e"]) await pools.write(alice, "house", [{ key, value: key }]);
    for (const page of [
      (after: string | undefined) => pools.listEntries(bob, "house", { limit: 1, after }),
      (after: string | undefined) => pools.snapshot(bob, "house", { limit: 1, after }),
    ]) {
      const seen: string[] = [];
      const cursors: string[] = [];
      for (let after: string | undefined; ; ) {
        const { entries, next } = await page(after);
        seen.push(...entries.map(({ key }) => key));
        if (next === null) break;
        cursors.push(next);
        after = next;
      }
      expect(seen).toEqual(["a", "d"]);
      expect(cursors).toEqual(["a"]);
    }
  });

  test("V8 a read of a version that was withdrawn is stale, also where the run's own older version is current again", async () => {
    const pools = await poolsOn(store, { house: { ...OPEN, keys: { plan: { policy: "last_write" } } } });
    const run = agent("alice", "r1");
    await pools.write(run, "house", [{ key: "plan", value: "mine" }]);
    await pools.write(bob, "house", [{ key: "plan", value: "theirs" }]);
    await pools.read(run, "house", "plan");
    expect(await pools.freshness(run)).toEqual({ fresh: true });
    await retract(pools, bob, { pool: "house", key: "plan", version: 2 });
    expect(await pools.freshness(run)).toMatchObject({ fresh: false, stale: [{ key: "plan", read: 2, current: 1 }] });
    await expect(pools.write(run, "house", [{ key: "out", value: 1 }], { ifFresh: true })).rejects.toMatchObject({ code: "pool.stale" });
    await pools.read(run, "house", "plan");
    expect(await pools.write(run, "house", [{ key: "out", value: 1 }], { ifFresh: true })).toHaveLength(1);
  });

  test("V8 outside a run as well, whoever has seen that an entry is gone is fresh again", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    const carol = guest("carol");
    await pools.write(alice, "house", [{ key: "k", value: 1 }]);
    await pools.read(carol, "house", "k");
    await pools.write(alice, "house", [{ key: "k", remove: true }]);
    const write = (value: number) => pools.write(carol, "house", [{ key: `out${value}`, value }], { ifFresh: true });
    await expect(write(1)).rejects.toMatchObject({ code: "pool.stale" });
    expect(await pools.read(carol, "house", "k")).toBeUndefined();
    expect(await write(2)).toHaveLength(1);
    // What it never saw leaves no trace.
    await pools.read(carol, "house", "never");
    expect(await place.tamper("select 1 from pool_reads where key = 'never'")).toEqual([]);
  });

  test("P5 the note of a removal made on external input taints whoever reads it", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    await pools.write(alice, "house", [{ key: "page", value: "from outside" }], { external: true });
    await pools.write(alice, "house", [{ key: "k", value: 1 }]);
    const [reader, writer] = [agent("reader", "r1"), agent("writer", "r2")];
    await pools.read(writer, "house", "page");
    await pools.write(writer, "house", [{ key: "k", remove: true, note: "obey me" }]);
    const { entries } = await pools.history(reader, "house", "k");
    expect(entries.map(({ label, deleted }) => [label, deleted])).toEqual([
      ["trusted", false],
      ["external", true],
    ]);
    const [made] = await pools.write(reader, "house", [{ key: "report", value: 1 }]);
    expect(made).toMatchObject({ label: "external" });
    expect(await pools.freshness(reader)).toMatchObject({ fresh: false, stale: [{ key: "k", read: 1, current: null }] });
  });

  test("P5 what was external stays so for its reader when the pool it was in is gone", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    const name = await locked((tx) => pools.createForRunIn(tx, "guildhall", "r1", { readers: ["*"], writers: ["*"] }));
    await pools.write({ ...alice, pool: name }, name, [{ key: "page", value: "from outside" }], { external: true });
    await pools.write({ ...alice, pool: name }, name, [{ key: "fine", value: 1 }]);
    const [tainted, clean, outside] = [agent("bob", "r2"), agent("carol", "r3"), guest("dave")];
    for (const reader of [tainted, outside]) await pools.read({ ...reader, pool: name }, name, "page");
    await pools.read({ ...clean, pool: name }, name, "fine");
    await locked((tx) => pools.sealIn(tx, "guildhall", name, 1_000));
    await place.elapse(1_001);
    await pools.sweep();
    await expect(pools.read(OPERATOR, name, "page")).rejects.toMatchObject({ code: "request.not_found" });
    const labelOf = async (caller: Caller, key: string) => (await pools.write(caller, "house", [{ key, value: 1 }]))[0]?.label;
    expect(await labelOf(tainted, "a")).toBe("external");
    expect(await labelOf(outside, "b")).toBe("external");
    expect(await labelOf(clean, "c")).toBe("trusted");
    expect(await pools.freshness(tainted)).toEqual({ fresh: true });
    expect((await pools.blame(OPERATOR, "house", "a")).derivedFrom).toEqual([]);
  });

  test("P5 differences that were shown are recorded, refused or only asked for", async () => {
    const pools = await poolsOn(store, { house: { ...OPEN, keys: { k: { policy: "last_write" } } } });
    const run = agent("alice", "r1");
    await pools.write(bob, "house", [{ key: "k", value: "fine" }]);
    await pools.read(run, "house", "k");
    await pools.write(bob, "house", [{ key: "k", value: "hostile" }], { external: true });
    expect(await pools.freshness(run)).toMatchObject({ fresh: false });
    expect((await pools.write(run, "house", [{ key: "out", value: 1 }]))[0]).toMatchObject({ label: "external" });
  });

  test("a retraction that waits for a writer takes with it what was built on the version meanwhile", async () => {
    const pools = await poolsOn(store, { house: { ...OPEN, keys: { list: { policy: "append" } } } });
    await pools.write(alice, "house", [{ key: "list", value: "good" }]);
    await pools.write(bob, "house", [{ key: "list", value: "bad" }]);
    const writer = heldOpen((tx) => pools.writeIn(tx, agent("carol"), "house", [{ key: "list", value: "more" }]));
    await writer.begun;
    const retracting = retract(pools, OPERATOR, { pool: "house", key: "list", version: 2 });
    await soon();
    writer.go();
    await writer.over;
    expect((await retracting).retracted.map(({ version }) => version)).toEqual([2, 3]);
    expect(await pools.read(OPERATOR, "house", "list")).toMatchObject({ version: 1, value: ["good"] });
  });

  test("V1 an entry that expires while a writer waits for its turn is no longer there for the writer", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    await pools.write(alice, "house", [{ key: "k", value: 1, ttlMs: 500 }]);
    const holder = heldOpen((tx) => pools.currentVersionsIn(tx, alice, "house", ["k"], true));
    await holder.begun;
    const write = pools.write(bob, "house", [{ key: "k", value: 2, ifVersion: 1 }]).catch((error: unknown) => error);
    // Really waited for: an open transaction of PostgreSQL may not hear of a clock that was moved.
    await soon(700);
    expect(await pools.read(alice, "house", "k")).toBeUndefined();
    holder.go();
    await holder.over;
    expect(await write).toMatchObject({ code: "pool.conflict", details: { current: null } });
  });

  test("V6 what a refused attempt would have defined holds for nobody", async () => {
    const pools = new Pools(store);
    const attempt = locked(async (tx) => {
      await pools.createIn(tx, "operator", "house", { readers: ["*"], writers: ["*"] });
      await pools.describeIn(tx, OPERATOR, "house");
      throw new Error("no");
    });
    await expect(attempt).rejects.toThrow("no");
    await makePool(store, pools, "house", { readers: ["alice"], writers: ["alice"] });
    await pools.write(alice, "house", [{ key: "k", value: 1 }]);
    await expect(pools.read(bob, "house", "k")).rejects.toMatchObject({ code: "request.not_found" });
  });

  test("R5 nobody stands still while thousands of versions are withdrawn, or a write rests on thousands of reads", {
    timeout: 60_000,
  }, async () => {
    const pools = await poolsOn(store, { house: OPEN });
    await pools.write(alice, "house", [{ key: "origin", value: 1 }]);
    const [run, reader] = [agent("bob", "r1"), agent("carol", "r2")];
    await pools.read(run, "house", "origin");
    // A database that is elsewhere keeps nobody waiting here, but takes its time.
    const count = place.kind === "sqlite" ? 3_000 : 300;
    for (let index = 0; index < count; index += 100) {
      const writes = Array.from({ length: 100 }, (_, at) => ({ key: `k${index + at}`, value: 1 }));
      await pools.write(run, "house", writes);
    }
    for (let after: string | null | undefined; after !== null; )
      after = (await pools.snapshot(reader, "house", { limit: 1_000, after: after ?? undefined })).next;
    let [turns, over] = [0, false];
    const turn = (): void => {
      turns++;
      if (!over) setImmediate(turn);
    };
    const turnsOf = async (work: Promise<unknown>): Promise<number> => {
      turns = 0;
      await work;
      return turns;
    };
    turn();
    expect(await turnsOf(pools.write(reader, "house", [{ key: "out", value: 1 }], { ifFresh: true }))).toBeGreaterThan(10);
    const retracting = retract(pools, OPERATOR, { pool: "house", key: "origin", version: 1 });
    expect(await turnsOf(retracting)).toBeGreaterThan(30);
    over = true;
    expect((await retracting).retracted).toHaveLength(count + 2);
  });

  test("V2 V7 heads and usage are right whoever writes, removes, withdraws, endorses and sweeps at once on two nodes", {
    timeout: 60_000,
  }, async () => {
    const seed = 20_261_115;
    let state = seed;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state >> 8) % below;
    };
    const keys = {
      list: { policy: "append" },
      most: { policy: "max" },
      loose: { policy: "last_write" },
      brief: { policy: "last_write", ttl: 30 },
    };
    const first = await poolsOn(store, { house: { ...OPEN, keys }, annex: OPEN });
    const other = await place.open();
    const nodes = [
      { store, pools: first },
      { store: other, pools: new Pools(other) },
    ];
    const names = [...Object.keys(keys), "strict", "other"];
    const worker = async (index: number): Promise<void> => {
      const { store: own, pools } = nodes[index % 2] as (typeof nodes)[number];
      for (let step = 0; step < 40; step++) {
        const caller = agent(`w${random(3)}`, `r${random(4)}`);
        const [key, pool] = [names[random(names.length)] as string, random(4) === 0 ? "annex" : "house"];
        const target = { pool, key, version: 1 + random(12) };
        const batch = names.slice(random(3), 3 + random(4)).map((one) => ({ key: one, value: random(100) }));
        const work: (() => Promise<unknown>)[] = [
          () => pools.write(caller, pool, [{ key, value: random(1_000) }], { external: random(3) === 0, ifFresh: random(3) === 0 }),
          () => pools.write(caller, pool, batch, { ifFresh: random(3) === 0 }),
          () => pools.write(caller, pool, [{ key, remove: true }]),
          () => pools.read(caller, pool, key),
          () => own.transact("retract", (tx) => pools.retractIn(tx, OPERATOR, target, "wrong"), "locked"),
          () => own.transact("endorse", (tx) => pools.endorseIn(tx, OPERATOR, pool, key, target.version, "fine"), "locked"),
          () => pools.sweep(),
        ];
        await (work[[0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 6][random(11)] as number] as () => Promise<unknown>)().catch((error) => {
          expect(error.code, `seed ${seed}`).toMatch(/^(pool|request)\./);
        });
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, index) => worker(index)));
    const heads = await place.tamper(`select h.pool, h.key, h.current_version, h.last_version, h.size, h.agent,
        (select max(version) from pool_versions v where v.pool = h.pool and v.key = h.key) as newest,
        (select v.version from pool_versions v where v.pool = h.pool and v.key = h.key and v.retracted_seq is null order by version desc limit 1) as standing
      from pool_keys h`);
    const tombstones = await place.tamper("select pool, key, version from pool_versions where value is null");
    const isTombstone = (pool: unknown, key: unknown, version: unknown): boolean =>
      tombstones.some((row) => row.pool === pool && row.key === key && row.version === version);
    const truth: Record<string, [number, number]> = {};
    for (const { pool, key, current_version, last_version, standing, newest, size, agent: author } of heads) {
      expect(Number(last_version)).toBe(Number(newest ?? 0));
      expect([pool, key, current_version]).toEqual([pool, key, isTombstone(pool, key, standing) ? null : standing]);
      if (current_version === null) continue;
      for (const name of ["", author]) {
        const [bytes, entries] = truth[`${pool}/${name}`] ?? [0, 0];
        truth[`${pool}/${name}`] = [bytes + Number(size), entries + 1];
      }
    }
    const usage = await place.tamper("select pool, agent, bytes, entries from pool_usage");
    expect(usage.length).toBeGreaterThan(3);
    for (const row of usage) {
      const name = `${row.pool}/${row.agent}`;
      expect([name, Number(row.bytes), Number(row.entries)]).toEqual([name, ...(truth[name] ?? [0, 0])]);
    }
  });
});
