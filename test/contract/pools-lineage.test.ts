import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { VersionRef } from "../../src/contract/pools.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import type { Pools } from "../../src/records/pools/pools.ts";
import { ReadLog } from "../../src/records/pools/read-log.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { agent, makePool, OPEN, poolsOn } from "./pool-callers.ts";

const HOUR = 3_600_000;

describe.each(PLACES)("what entries rest on, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let pools: Pools;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    const loose = { policy: "last_write" };
    pools = await poolsOn(store, { house: { ...OPEN, keys: { a: loose, b: loose, c: loose, d: loose, list: { policy: "append" } } } });
  });
  afterEach(() => place.remove());

  const put = async (caller: Caller, key: string, value: unknown = key, options = {}, pool = "house") =>
    (await pools.write(caller, pool, [{ key, value }], options))[0];
  const retract = (caller: Caller, target: VersionRef, reason = "wrong") =>
    store.transact("retract", (tx) => pools.retractIn(tx, caller, target, reason), "locked");
  const names = (items: readonly VersionRef[]) => items.map(({ pool, key, version }) => `${pool}/${key}@${version}`).sort();
  const eventsOf = async (type: string) => (await store.ledger.read(0, 1_000, ["pool"])).filter((event) => event.type === type);

  test("blame tells what a version was made from, who read it, and all that was made from it, across pools", async () => {
    await makePool(store, pools, "lab", OPEN);
    await put(agent("alice", "r1", "research"), "a");
    const coder = agent("bob", "r2", "implement");
    await pools.read(coder, "house", "a");
    await put(coder, "b");
    await pools.read(coder, "house", "list");
    const tester = agent("carol", "r3", "test");
    await pools.read(tester, "house", "b");
    await put(tester, "report", 1, {}, "lab");
    await put(agent("dave", "r4"), "c");
    const blame = await pools.blame(OPERATOR, "house", "a");
    expect(blame.entry).toMatchObject({ key: "a", version: 1, author: { agent: "alice", run: "r1", step: "research" } });
    expect(names(blame.derivedFrom)).toEqual([]);
    expect(blame.readBy).toMatchObject([{ agent: "bob", run: "r2", version: 1 }]);
    expect(names(blame.descendants)).toEqual(["house/b@1", "lab/report@1"]);
    expect(names((await pools.blame(OPERATOR, "lab", "report")).derivedFrom)).toEqual(["house/b@1"]);
    expect(names((await pools.blame(OPERATOR, "house", "b")).derivedFrom)).toEqual(["house/a@1"]);
  });

  test("what was read after a version was written is no part of it", async () => {
    await put(agent("alice"), "a");
    const bob = agent("bob", "r1");
    await put(bob, "b");
    await pools.read(bob, "house", "a");
    await put(bob, "c");
    expect(names((await pools.blame(OPERATOR, "house", "b")).derivedFrom)).toEqual([]);
    expect(names((await pools.blame(OPERATOR, "house", "a")).descendants)).toEqual(["house/c@1"]);
  });

  test("outside a turn a version rests on the reads of the hour before", async () => {
    await put(agent("alice"), "a");
    const bob = agent("bob");
    await pools.read(bob, "house", "a");
    await place.elapse(HOUR - 60_000);
    await put(bob, "b");
    await place.elapse(120_000);
    await put(bob, "c");
    expect(names((await pools.blame(OPERATOR, "house", "a")).descendants)).toEqual(["house/b@1"]);
    expect(names((await pools.blame(OPERATOR, "house", "c")).derivedFrom)).toEqual([]);
    await pools.read(bob, "house", "a");
    await put(bob, "d");
    expect(names((await pools.blame(OPERATOR, "house", "d")).derivedFrom)).toEqual(["house/a@1"]);
  });

  test("what a policy builds upon is part of the result, read or not", async () => {
    await put(agent("alice", "r1"), "list", "one");
    await put(agent("bob", "r2"), "list", "two");
    expect(names((await pools.blame(OPERATOR, "house", "list", 2)).derivedFrom)).toEqual(["house/list@1"]);
    // The answer showed bob the whole list: what he writes next rests on it.
    await put(agent("bob", "r2"), "b");
    expect(names((await pools.blame(OPERATOR, "house", "b")).derivedFrom)).toEqual(["house/list@2"]);
    await retract(OPERATOR, { pool: "house", key: "list", version: 1 });
    expect(await pools.read(OPERATOR, "house", "list")).toBeUndefined();
  });

  test("reads of a run are recorded with its next write, no later, and count for it", async () => {
    await put(agent("alice"), "a");
    const bob = agent("bob", "r1", "s1");
    const log = new ReadLog();
    await pools.read(bob, "house", "a", { reads: log });
    expect(await pools.readers(OPERATOR, "house", "a")).toEqual([]);
    await expect(pools.write(bob, "house", [{ key: "a", value: 1, ifVersion: 9 }], { reads: log })).rejects.toMatchObject({
      code: "pool.conflict",
    });
    expect(log.pending).toHaveLength(1);
    await put(bob, "b", 1, { reads: log });
    expect(log.pending).toEqual([]);
    expect(await pools.readers(OPERATOR, "house", "a")).toMatchObject([{ agent: "bob", run: "r1", version: 1 }]);
    expect(names((await pools.blame(OPERATOR, "house", "b")).derivedFrom)).toEqual(["house/a@1"]);
  });

  test("retract withdraws a version and all that was made from it; prior good versions are current again", async () => {
    await put(agent("alice", "r0"), "a", "good");
    await put(agent("bob", "r0"), "b", "good");
    await put(agent("mallory", "r1", "s1"), "a", "bad");
    const bob = agent("bob", "r2", "s2");
    await pools.read(bob, "house", "a");
    await put(bob, "b", "from bad");
    const carol = agent("carol", "r3", "s3");
    await pools.read(carol, "house", "b");
    await put(carol, "c", "from b");
    await pools.read(agent("eve", "r4", "s4"), "house", "c");
    await put(agent("dave", "r5"), "d", "unrelated");
    await expect(retract(agent("bob"), { pool: "house", key: "a", version: 2 })).rejects.toMatchObject({ code: "request.forbidden" });
    const answer = await retract(OPERATOR, { pool: "house", key: "a", version: 2 }, "made up");
    expect(names(answer.retracted)).toEqual(["house/a@2", "house/b@2", "house/c@1"]);
    expect(answer.rerun).toEqual([
      { agent: "mallory", run: "r1", step: "s1" },
      { agent: "bob", run: "r2", step: "s2" },
      { agent: "carol", run: "r3", step: "s3" },
      { agent: "eve", run: "r4", step: "s4" },
    ]);
    expect([...answer.concerned.keys()].sort()).toEqual(["bob", "carol", "eve", "mallory"]);
    expect(await pools.read(OPERATOR, "house", "a")).toMatchObject({ value: "good", version: 1, retracted: false });
    expect(await pools.read(OPERATOR, "house", "b")).toMatchObject({ value: "good", version: 1 });
    expect(await pools.read(OPERATOR, "house", "c")).toBeUndefined();
    expect(await pools.read(OPERATOR, "house", "d")).toMatchObject({ value: "unrelated" });
    expect(await pools.read(OPERATOR, "house", "a", { version: 2 })).toMatchObject({
      retracted: true,
      retraction: { by: "operator", reason: "made up" },
    });
    expect(await put(agent("alice"), "a", "better")).toMatchObject({ version: 3 });
    expect((await pools.details(OPERATOR, "house")).usage.entries).toBe(3);
    const [event] = await eventsOf("pool.retracted");
    expect(event?.data).toEqual({
      keys: [
        { key: "a", version: 2, current: 1 },
        { key: "b", version: 2, current: 1 },
        { key: "c", version: 1, current: null },
      ],
    });
    // Nothing is withdrawn twice.
    expect((await retract(OPERATOR, { pool: "house", key: "a", version: 2 })).retracted).toEqual([]);
  });

  test("an author withdraws its own version, and only what it might have written itself", async () => {
    await makePool(store, pools, "private", { readers: ["bob"], writers: ["bob"] });
    const [alice, bob] = [agent("alice"), agent("bob")];
    await put(alice, "a");
    await pools.read(bob, "house", "a");
    await put(bob, "b");
    await put(bob, "own", 1, {}, "private");
    const blame = await pools.blame(alice, "house", "a");
    expect(names(blame.descendants)).toEqual(["house/b@1"]);
    expect(blame.hidden).toBe(1);
    const answer = await retract(alice, { pool: "house", key: "a", version: 1 });
    expect(names(answer.retracted)).toEqual(["house/a@1", "house/b@1"]);
    expect(answer.left).toBe(1);
    expect(await pools.read(bob, "private", "own")).toMatchObject({ retracted: false });
  });

  test("P5 what rests on external input is external, however far it has travelled", async () => {
    expect(await put(agent("web", "r1"), "a", "from the web", { external: true })).toMatchObject({ label: "external" });
    const bob = agent("bob", "r2");
    expect(await put(bob, "b")).toMatchObject({ label: "trusted" });
    const log = new ReadLog();
    await pools.read(bob, "house", "a", { reads: log });
    expect(await put(bob, "b", 2, { reads: log })).toMatchObject({ label: "external" });
    const carol = agent("carol");
    await pools.read(carol, "house", "b");
    expect(await put(carol, "c")).toMatchObject({ label: "external" });
    await place.elapse(HOUR + 1);
    expect(await put(carol, "d")).toMatchObject({ label: "trusted" });
    // A conflict, a difference and a list that grew show what is there: that is reading too.
    const dave = agent("dave", "r4");
    await expect(pools.write(dave, "house", [{ key: "b", value: 1, ifVersion: 1 }])).rejects.toMatchObject({ code: "pool.conflict" });
    expect(await put(dave, "d", 1)).toMatchObject({ label: "external" });
    await put(agent("web", "r1"), "list", "from the web", { external: true });
    expect(await put(agent("erin", "r5"), "list", "mine")).toMatchObject({ label: "external" });
    expect(await put(agent("erin", "r5"), "d", 2)).toMatchObject({ label: "external" });
    const frank = agent("frank", "r6");
    await pools.history(frank, "house", "a");
    expect(await put(frank, "d", 3)).toMatchObject({ label: "external" });
  });

  test("P5 only an operator or a rule raises a label, and that is an event", async () => {
    await makePool(store, pools, "checked", {
      ...OPEN,
      keys: { k: { policy: "last_write", endorse: ["reviewer"] }, l: { policy: "append", endorse: ["reviewer"] } },
    });
    await put(agent("web", "r1"), "a", "from the web", { external: true });
    const endorse = (caller: Caller) =>
      store.transact("endorse", (tx) => pools.endorseIn(tx, caller, "house", "a", undefined, "looked at it"), "locked");
    await expect(endorse(agent("web"))).rejects.toMatchObject({ code: "request.forbidden" });
    const bob = agent("bob", "r2");
    await pools.read(bob, "house", "a");
    expect(await put(bob, "b")).toMatchObject({ label: "external" });
    expect(await endorse(OPERATOR)).toMatchObject({ label: "trusted", version: 1 });
    expect(await pools.read(bob, "house", "a")).toMatchObject({ label: "trusted" });
    expect(await put(bob, "c")).toMatchObject({ label: "trusted" });
    expect(await pools.read(OPERATOR, "house", "b")).toMatchObject({ label: "external" });
    expect(await eventsOf("pool.endorsed")).toMatchObject([
      { actor: "operator", data: { keys: [{ key: "a", version: 1, label: "trusted" }] } },
    ]);

    const reviewer = agent("reviewer", "r3");
    await pools.read(reviewer, "house", "b");
    expect(await put(reviewer, "k", 1, {}, "checked")).toMatchObject({ label: "trusted" });
    expect(await eventsOf("pool.endorsed")).toMatchObject([
      {},
      { actor: "reviewer", data: { rule: true, keys: [{ key: "k", version: 1 }] } },
    ]);
    // What others put there before is not the reviewer's to endorse.
    await put(agent("web", "r1"), "l", "x", { external: true }, "checked");
    expect(await put(reviewer, "l", "y", {}, "checked")).toMatchObject({ label: "external" });
  });

  test("V8 a run is told what has changed under it, with a difference it can act on", async () => {
    await put(agent("alice"), "a", { price: 1, name: "x" });
    const bob = agent("bob", "r1");
    const log = new ReadLog();
    await pools.read(bob, "house", "a", { reads: log });
    await pools.read(bob, "house", "absent", { reads: log });
    expect(await pools.freshness(bob, [], log)).toEqual({ fresh: true });
    await pools.write(agent("carol"), "house", [{ key: "a", value: { price: 2, name: "x" }, note: "new price" }]);
    expect(await pools.freshness(bob, [], log)).toMatchObject({
      fresh: false,
      stale: [
        { pool: "house", key: "a", read: 1, current: 2, by: "carol", note: "new price", diff: [{ path: "/price", before: 1, after: 2 }] },
      ],
    });
    const own = { key: "a", value: { price: 3, name: "y" }, ifVersion: 2 };
    await expect(pools.write(bob, "house", [own], { reads: log, ifFresh: true })).rejects.toMatchObject({
      code: "pool.stale",
      details: {
        stale: [
          {
            key: "a",
            yours: [
              { path: "/price", before: 1, after: 3 },
              { path: "/name", before: "x", after: "y" },
            ],
            conflicts: ["/price"],
          },
        ],
      },
    });
    // Having been shown the difference is not having read the entry.
    expect(await pools.freshness(bob, [], log)).toMatchObject({ fresh: false });
    await pools.read(bob, "house", "a", { reads: log });
    expect(await pools.freshness(bob, [], log)).toEqual({ fresh: true });
    expect(await pools.write(bob, "house", [own], { reads: log, ifFresh: true })).toMatchObject([{ version: 3 }]);
    expect(await pools.freshness(bob)).toEqual({ fresh: true });
    await put(agent("carol"), "absent", 1);
    expect(await pools.freshness(bob)).toMatchObject({ stale: [{ key: "absent", read: 0, current: 1, diff: [{ path: "", after: 1 }] }] });
    const settle = store.transact("settle", (tx) => pools.refuseStaleIn(tx, bob), "locked");
    await expect(settle).rejects.toMatchObject({ code: "pool.stale" });
  });

  test("V8 a version that was withdrawn, deleted or overwritten unseen is stale, a run's own writes are not", async () => {
    for (const key of ["a", "b", "c", "d"]) await put(agent("alice"), key, 1);
    const bob = agent("bob", "r1");
    for (const key of ["a", "b", "c", "d"]) await pools.read(bob, "house", key);
    await put(bob, "a", 2);
    await pools.write(bob, "house", [{ key: "b", remove: true }]);
    expect(await pools.freshness(bob)).toEqual({ fresh: true });
    await put(agent("carol"), "a", 3);
    await put(bob, "a", 4);
    expect(await pools.freshness(bob)).toMatchObject({ stale: [{ key: "a", read: 1, current: 4 }] });
    await retract(OPERATOR, { pool: "house", key: "c", version: 1 });
    await pools.write(agent("carol"), "house", [{ key: "d", remove: true }]);
    expect(await pools.freshness(bob)).toMatchObject({
      stale: [{ key: "a" }, { key: "c", read: 1, current: null }, { key: "d", read: 1, current: null }],
    });
  });
});
