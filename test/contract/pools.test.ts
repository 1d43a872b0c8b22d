import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { agent, guest, makePool, OPEN, poolsOn, READER } from "./pool-callers.ts";

const alice = agent("alice");
const bob = guest("bob");

describe.each(PLACES)("pools on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const typesOf = async (pool: string) => (await store.ledger.read(0, 1_000, ["pool", pool])).map((event) => event.type);

  test("an entry carries its version, author, label, note, time, expiry and size, set by the gateway", async () => {
    const pools = await poolsOn(store, { house: { ...OPEN, keys: { short: { ttl: "1h" } } } });
    const writer = agent("alice", "run1", "research");
    const [entry] = await pools.write(writer, "house", [{ key: "short", value: { a: "ä" }, note: "first" }]);
    expect(entry).toMatchObject({
      pool: "house",
      key: "short",
      value: { a: "ä" },
      version: 1,
      author: { agent: "alice", run: "run1", step: "research", call: "run1-call" },
      label: "trusted",
      note: "first",
      size: 10,
      retracted: false,
      seq: expect.any(Number),
    });
    expect((entry?.expiresAt as number) - (entry?.at as number)).toBe(3_600_000);
    expect(await pools.read(OPERATOR, "house", "short")).toEqual(entry);
    expect(await typesOf("house")).toEqual(["pool.created", "pool.written"]);
  });

  test("a second write needs the version it replaces, and a refusal shows the current entry", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    const [first] = await pools.write(alice, "house", [{ key: "k", value: 1, ifVersion: null }]);
    for (const ifVersion of [undefined, null, 2]) {
      const write = { key: "k", value: 2, ...(ifVersion === undefined ? {} : { ifVersion }) };
      await expect(pools.write(bob, "house", [write])).rejects.toMatchObject({ code: "pool.conflict", details: { current: first } });
    }
    expect(await pools.write(bob, "house", [{ key: "k", value: 2, ifVersion: 1 }])).toMatchObject([
      { version: 2, author: { agent: "bob" } },
    ]);
    // What a refusal showed was read.
    expect(await pools.readers(OPERATOR, "house", "k")).toMatchObject([{ agent: "bob", run: null, version: 1 }]);
    expect(await typesOf("house")).toEqual([
      "pool.created",
      "pool.written",
      "pool.conflicted",
      "pool.conflicted",
      "pool.conflicted",
      "pool.written",
    ]);
  });

  test("V2 versions grow across delete, expiry, retraction and retirement, and are never given out again", async () => {
    const pools = new Pools(store);
    const config = { house: { readers: ["*"], writers: ["*"] } };
    await pools.reconcile(config);
    const put = async (ttlMs?: number) =>
      (await pools.write(alice, "house", [{ key: "k", value: 1, ifVersion: null, ...(ttlMs ? { ttlMs } : {}) }]))[0]?.version as number;
    const versions = [await put()];
    const [tombstone] = await pools.write(alice, "house", [{ key: "k", remove: true, ifVersion: 1 }]);
    expect(tombstone).toMatchObject({ version: 2, deleted: true, value: null });
    expect(await pools.read(alice, "house", "k")).toBeUndefined();
    versions.push(tombstone?.version as number, await put(1_000));
    await place.elapse(1_001);
    expect(await pools.read(alice, "house", "k")).toBeUndefined();
    versions.push(await put(1_000));
    await place.elapse(1_001);
    await pools.sweep();
    versions.push(await put());
    await store.transact("retract", (tx) => pools.retractIn(tx, OPERATOR, { pool: "house", key: "k", version: 6 }, "wrong"), "locked");
    expect(await pools.read(alice, "house", "k")).toBeUndefined();
    versions.push(await put());
    await pools.reconcile({});
    await expect(pools.read(alice, "house", "k")).rejects.toMatchObject({ code: "request.not_found" });
    expect(await pools.read(OPERATOR, "house", "k")).toMatchObject({ version: 7 });
    await expect(pools.write(OPERATOR, "house", [{ key: "k", value: 1, ifVersion: 7 }])).rejects.toMatchObject({ code: "pool.sealed" });
    await pools.reconcile(config);
    versions.push((await pools.write(alice, "house", [{ key: "k", value: 2, ifVersion: 7 }]))[0]?.version as number);
    expect(versions).toEqual([1, 2, 3, 4, 6, 7, 8]);
    const { entries } = await pools.history(OPERATOR, "house", "k");
    expect(entries.map((entry) => [entry.version, entry.deleted, entry.retracted])).toEqual([
      [1, false, false],
      [2, true, false],
      [3, false, false],
      [4, false, false],
      [5, true, false],
      [6, false, true],
      [7, false, false],
      [8, false, false],
    ]);
  });

  test("a delete needs no version, keeps one that is given, and finds nothing the second time", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    await pools.write(alice, "house", [{ key: "k", value: 1 }]);
    await expect(pools.write(alice, "house", [{ key: "k", remove: true, ifVersion: 5 }])).rejects.toMatchObject({ code: "pool.conflict" });
    await pools.write(alice, "house", [{ key: "k", remove: true }]);
    await expect(pools.write(alice, "house", [{ key: "k", remove: true }])).rejects.toMatchObject({ code: "request.not_found" });
    expect(await typesOf("house")).toContain("pool.deleted");
  });

  test("policies combine what is there with what comes", async () => {
    const keys = Object.fromEntries(["last_write", "append", "merge", "max", "min", "union"].map((policy) => [policy, { policy }]));
    const pools = await poolsOn(store, { house: { ...OPEN, keys } });
    const put = async (key: string, value: unknown) => (await pools.write(alice, "house", [{ key, value }]))[0];
    await put("last_write", 1);
    expect(await put("last_write", 2)).toMatchObject({ value: 2, version: 2 });
    await put("append", "a");
    expect(await put("append", ["b", ["c"]])).toMatchObject({ value: ["a", "b", ["c"]], version: 2 });
    await put("union", [1, { x: 1, y: 2 }]);
    expect(await put("union", [{ y: 2, x: 1 }, 2])).toMatchObject({ value: [1, { x: 1, y: 2 }, 2], version: 2 });
    expect(await put("union", 2)).toMatchObject({ version: 2 });
    await put("merge", { a: { b: 1, c: 2 }, d: 3 });
    expect(await put("merge", { a: { b: null, e: [1] }, d: "x" })).toMatchObject({ value: { a: { c: 2, e: [1] }, d: "x" }, version: 2 });
    await put("max", 5);
    expect(await put("max", 3)).toMatchObject({ value: 5, version: 1 });
    expect(await put("max", 7)).toMatchObject({ value: 7, version: 2 });
    await put("min", 5);
    expect(await put("min", 3)).toMatchObject({ value: 3, version: 2 });
    await expect(put("max", "high")).rejects.toMatchObject({ code: "pool.invalid_value" });
    // The version counts under every policy.
    await expect(pools.write(alice, "house", [{ key: "append", value: 1, ifVersion: 1 }])).rejects.toMatchObject({ code: "pool.conflict" });
  });

  test("names of prototypes are data like any other", async () => {
    const pools = await poolsOn(store, { house: { ...OPEN, keys: { m: { policy: "merge" } } } });
    const hostile = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"x": 1}}}');
    await pools.write(alice, "house", [{ key: "m", value: hostile }]);
    await pools.write(alice, "house", [{ key: "m", value: JSON.parse('{"__proto__": {"more": 2}}') }]);
    const entry = await pools.read(alice, "house", "m");
    expect(JSON.stringify(entry?.value)).toBe('{"constructor":{"prototype":{"x":1}},"__proto__":{"polluted":1,"more":2}}');
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    for (const key of ["__proto__", "constructor", "toString"]) {
      await pools.write(alice, "house", [{ key, value: 1 }]);
      expect(await pools.read(alice, "house", key)).toMatchObject({ key, value: 1 });
    }
  });

  test("a value that does not fit its schema is refused, with what and where", async () => {
    const schema = { type: "object", properties: { price: { type: "number" } }, required: ["price"] };
    const pools = await poolsOn(store, { house: { ...OPEN, keys: { offer: { schema } } } });
    await expect(pools.write(alice, "house", [{ key: "offer", value: { price: "cheap" } }])).rejects.toMatchObject({
      code: "pool.invalid_value",
      message: expect.stringContaining("#/price"),
    });
    await expect(pools.write(alice, "house", [{ key: "offer", value: {} }])).rejects.toMatchObject({ code: "pool.invalid_value" });
    expect(await pools.write(alice, "house", [{ key: "offer", value: { price: 1 } }])).toMatchObject([{ version: 1 }]);
    await expect(makePool(store, pools, "broken", { keys: { k: { schema: { $ref: "#/nowhere" } } } })).rejects.toMatchObject({
      code: "request.malformed",
    });
  });

  test("values that are nested without end are refused", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    const deep = JSON.parse("[".repeat(50_000) + "]".repeat(50_000));
    await expect(pools.write(alice, "house", [{ key: "k", value: deep }])).rejects.toMatchObject({ code: "pool.invalid_value" });
  });

  test("V7 what is too large is refused or spilled, never cut", async () => {
    const keys = {
      big: { max_bytes: 1_000, overflow: "spill" },
      small: { max_bytes: 1_000 },
      list: { max_bytes: 1_000, policy: "append", overflow: "spill" },
    };
    const pools = await poolsOn(store, { house: { ...OPEN, keys } });
    const text = "x".repeat(5_000);
    await expect(pools.write(alice, "house", [{ key: "small", value: text }])).rejects.toMatchObject({
      code: "pool.too_large",
      details: { size: 5_002, max: 1_000 },
    });
    const [spilled] = await pools.write(alice, "house", [{ key: "big", value: text }]);
    expect(spilled).toMatchObject({ spilled: true, size: 5_002, value: { preview: expect.stringMatching(/^"x+$/), size: 5_002 } });
    expect(await pools.read(alice, "house", "big", { full: true })).toMatchObject({ value: text });
    expect(await pools.read(alice, "house", "big", { full: true, version: 1 })).toMatchObject({ value: text });
    await pools.write(alice, "house", [{ key: "list", value: text }]);
    await pools.write(alice, "house", [{ key: "list", value: "end" }]);
    expect(await pools.read(alice, "house", "list", { full: true })).toMatchObject({ value: [text, "end"], version: 2 });
    await place.elapse(100_000);
    await store.blobs.sweep(1);
    expect(await pools.read(alice, "house", "big", { full: true })).toMatchObject({ value: text });
  });

  test("a batch is written whole, as one event, or not at all", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    await pools.write(alice, "house", [{ key: "a", value: 1 }]);
    await expect(
      pools.write(alice, "house", [
        { key: "b", value: 1 },
        { key: "a", value: 2 },
      ]),
    ).rejects.toMatchObject({ code: "pool.conflict", details: { key: "a" } });
    expect(await pools.read(alice, "house", "b")).toBeUndefined();
    const entries = await pools.write(alice, "house", [
      { key: "b", value: 1, ifVersion: null },
      { key: "a", remove: true, ifVersion: 1 },
    ]);
    expect(entries).toMatchObject([
      { key: "b", version: 1 },
      { key: "a", version: 2, deleted: true },
    ]);
    expect(new Set(entries.map((entry) => entry.seq)).size).toBe(1);
    const twice = [
      { key: "c", value: 1 },
      { key: "c", value: 2 },
    ];
    await expect(pools.write(alice, "house", twice)).rejects.toMatchObject({ code: "request.malformed" });
  });

  test("lists are paged in order, by prefix, without what has gone, and show no content", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    for (const key of ["b", "a/2", "a/1", "a0", "A", "ä"]) await pools.write(alice, "house", [{ key, value: key, note: "secret" }]);
    await pools.write(alice, "house", [{ key: "a0", remove: true }]);
    await pools.write(alice, "house", [{ key: "late", value: 1, ttlMs: 1_000 }]);
    await place.elapse(1_001);
    const first = await pools.listEntries(alice, "house", { limit: 2 });
    expect(first).toMatchObject({ entries: [{ key: "A" }, { key: "a/1" }], next: "a/1" });
    expect(JSON.stringify(first)).not.toContain("secret");
    const rest = await pools.listEntries(alice, "house", { after: first.next as string });
    expect(rest).toMatchObject({ entries: [{ key: "a/2" }, { key: "b" }, { key: "ä" }], next: null });
    expect((await pools.listEntries(alice, "house", { prefix: "a/" })).entries.map((entry) => entry.key)).toEqual(["a/1", "a/2"]);
  });

  test("V6 nobody reads or writes what is not theirs, and cannot tell it from what is not there", async () => {
    const pools = await poolsOn(store, {
      house: {
        readers: ["bob"],
        writers: ["alice"],
        keys: { secret: { readers: [], writers: ["alice"] }, shared: { readers: ["carol"] } },
      },
      private: { readers: ["alice"], writers: ["alice"] },
    });
    for (const key of ["plain", "secret", "shared"]) await pools.write(alice, "house", [{ key, value: key }]);
    await pools.write(alice, "private", [{ key: "k", value: 1 }]);
    const carol = agent("carol");
    const answer = (work: Promise<unknown>) =>
      work.then(
        (value) => ({ value }),
        (error) => ({ code: error.code, message: error.message, details: error.details }),
      );
    // A pool of somebody else's, and one that does not exist.
    for (const attempt of [
      (pool: string) => pools.read(bob, pool, "k"),
      (pool: string) => pools.write(bob, pool, [{ key: "k", value: 2 }]),
      (pool: string) => pools.history(bob, pool, "k"),
      (pool: string) => pools.listEntries(bob, pool),
      (pool: string) => pools.snapshot(bob, pool),
      (pool: string) => pools.details(bob, pool),
      (pool: string) => pools.blame(bob, pool, "k"),
      (pool: string) => pools.watch(bob, pool, 0, AbortSignal.timeout(10)),
      (pool: string) => store.transact("r", (tx) => pools.retractIn(tx, bob, { pool, key: "k", version: 1 }, "x"), "locked"),
    ]) {
      const [theirs, nobodys] = [await answer(attempt("private")), await answer(attempt("nowhere"))];
      expect(JSON.stringify(theirs).replaceAll("private", "nowhere")).toBe(JSON.stringify(nobodys));
    }
    // A key of somebody else's, and one that does not exist.
    for (const attempt of [
      (key: string) => pools.read(bob, "house", key),
      (key: string) => pools.read(bob, "house", key, { version: 1 }),
      (key: string) => pools.history(bob, "house", key),
      (key: string) => pools.readers(bob, "house", key),
      (key: string) => pools.blame(bob, "house", key),
      (key: string) => pools.write(bob, "house", [{ key, value: 1 }]),
    ]) {
      expect(JSON.stringify(await answer(attempt("secret")))).toBe(
        JSON.stringify(await answer(attempt("nothere"))).replaceAll("nothere", "secret"),
      );
    }
    expect((await pools.list(carol)).map((pool) => pool.name)).toEqual(["house"]);
    expect(await pools.read(carol, "house", "shared")).toMatchObject({ value: "shared" });
    expect(await pools.read(bob, "house", "shared")).toBeUndefined();
    expect((await pools.listEntries(carol, "house")).entries.map((entry) => entry.key)).toEqual(["shared"]);
    expect((await pools.listEntries(bob, "house")).entries.map((entry) => entry.key)).toEqual(["plain"]);
    expect((await pools.snapshot(bob, "house")).entries.map((entry) => entry.key)).toEqual(["plain"]);
    await expect(pools.write(bob, "house", [{ key: "plain", value: 2, ifVersion: 1 }])).rejects.toMatchObject({
      code: "request.forbidden",
    });
    await expect(pools.write(READER, "house", [{ key: "plain", value: 2, ifVersion: 1 }])).rejects.toMatchObject({
      code: "request.forbidden",
    });
    expect(await pools.read(READER, "private", "k")).toMatchObject({ value: 1 });
    const channel = { ...alice, kind: "channel" as const };
    await expect(pools.read(channel, "house", "plain")).rejects.toMatchObject({ code: "request.not_found" });
  });

  test("V6 a step reads and writes no more than it has declared", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    const grant = { reads: ["in"], writes: ["out"] };
    for (const key of ["in", "other"]) await pools.write(alice, "house", [{ key, value: 1 }]);
    expect(await pools.read(alice, "house", "in", { grant })).toMatchObject({ value: 1 });
    await expect(pools.read(alice, "house", "other", { grant })).rejects.toMatchObject({ code: "request.forbidden" });
    await expect(pools.write(alice, "house", [{ key: "in", value: 2, ifVersion: 1 }], { grant })).rejects.toMatchObject({
      code: "request.forbidden",
    });
    expect(await pools.write(alice, "house", [{ key: "out", value: 2 }], { grant })).toHaveLength(1);
  });

  test("the pool of a run is sealed at once, and removed with all it held when its time is over", async () => {
    const pools = new Pools(store);
    const name = await store.transact(
      "run",
      (tx) =>
        pools.createForRunIn(tx, "guildhall", "r1", { readers: ["*"], writers: ["*"], keys: { k: { max_bytes: 10, overflow: "spill" } } }),
      "locked",
    );
    expect(name).toBe("run:r1");
    const [mine, others] = [
      { ...alice, pool: name },
      { ...bob, pool: name },
    ];
    await pools.write(mine, name, [{ key: "k", value: "x".repeat(100) }]);
    for (let index = 0; index < 3; index++) await pools.write(mine, name, [{ key: `k${index}`, value: index }]);
    await pools.read(others, name, "k");
    await store.transact("seal", (tx) => pools.sealIn(tx, "guildhall", name, 60_000), "locked");
    await expect(pools.write(mine, name, [{ key: "new", value: 1 }])).rejects.toMatchObject({ code: "pool.sealed" });
    expect(await pools.read(others, name, "k")).toMatchObject({ version: 1 });
    await pools.sweep();
    expect(await pools.read(others, name, "k")).toMatchObject({ version: 1 });
    await place.elapse(60_001);
    await expect(pools.read(OPERATOR, name, "k")).rejects.toMatchObject({ code: "request.not_found" });
    await pools.sweep();
    for (const table of ["pools", "pool_keys", "pool_versions", "pool_reads", "pool_usage", "blob_references"])
      expect(await place.tamper(`select * from ${table}`), table).toEqual([]);
    expect((await typesOf(name)).slice(-2)).toEqual(["pool.sealed", "pool.removed"]);
  });

  test("a pool is made once, and the config may take it over", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    await expect(makePool(store, pools, "house", {})).rejects.toMatchObject({ code: "pool.exists" });
    await pools.write(alice, "house", [{ key: "k", value: 1 }]);
    await pools.reconcile({ house: { readers: ["bob"] } });
    await pools.reconcile({ house: { readers: ["bob"] } });
    expect(await pools.details(OPERATOR, "house")).toMatchObject({
      kind: "config",
      definition: { readers: ["bob"] },
      usage: { bytes: 1, entries: 1 },
    });
    await expect(pools.read(alice, "house", "k")).rejects.toMatchObject({ code: "request.not_found" });
    expect(await typesOf("house")).toEqual(["pool.created", "pool.written", "pool.changed"]);
  });

  test("reads are recorded before they are answered: once for each version and reader, and a restart forgets none", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    await pools.write(alice, "house", [{ key: "k", value: 1 }]);
    for (let repeat = 0; repeat < 3; repeat++) await pools.read(bob, "house", "k");
    await pools.read(OPERATOR, "house", "k");
    await pools.read(agent("bob", "run7", "s"), "house", "k");
    const again = new Pools(await place.open());
    await again.read(bob, "house", "k");
    expect(await again.readers(alice, "house", "k")).toMatchObject([
      { agent: "bob", run: null, version: 1, at: expect.any(Number) },
      { agent: "bob", run: "run7", version: 1 },
    ]);
  });

  test("an expired entry is absent at once, and its tombstone is an event", async () => {
    const pools = await poolsOn(store, { house: { ...OPEN, keys: { k: { ttl: 5_000 } } } });
    await pools.write(alice, "house", [{ key: "k", value: "12345678" }]);
    await place.elapse(5_000);
    expect(await pools.read(alice, "house", "k")).toBeUndefined();
    expect((await pools.details(OPERATOR, "house")).usage).toEqual({ bytes: 10, entries: 1 });
    await Promise.all([pools.sweep(), new Pools(await place.open()).sweep()]);
    expect((await pools.details(OPERATOR, "house")).usage).toEqual({ bytes: 0, entries: 0 });
    expect(await typesOf("house")).toEqual(["pool.created", "pool.written", "pool.expired"]);
    expect((await pools.history(alice, "house", "k")).entries).toMatchObject([{ version: 1 }, { version: 2, deleted: true }]);
  });

  test("a difference names what changed, by place", async () => {
    const pools = await poolsOn(store, { house: OPEN });
    await pools.write(alice, "house", [{ key: "k", value: { a: 1, b: [1, 2], "c/d": true } }]);
    await pools.write(alice, "house", [{ key: "k", value: { a: 2, b: [1, 2, 3] }, ifVersion: 1 }]);
    expect(await pools.difference(bob, "house", "k", 1, 2)).toMatchObject({
      from: { version: 1 },
      to: { version: 2 },
      changes: [
        { path: "/a", before: 1, after: 2 },
        { path: "/b/2", after: 3 },
        { path: "/c~1d", before: true },
      ],
      truncated: false,
    });
    await expect(pools.difference(bob, "house", "k", 1, 9)).rejects.toMatchObject({ code: "request.not_found" });
  });
});
