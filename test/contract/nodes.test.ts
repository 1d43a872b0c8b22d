import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { viewNodes } from "../../src/acts/view-nodes.ts";
import { nodeList } from "../../src/contract/nodes.ts";
import { nodeFindings } from "../../src/daemon/doctor/node-checks.ts";
import { Presence } from "../../src/daemon/presence.ts";
import type { Log } from "../../src/kernel/log.ts";
import { accountLease } from "../../src/records/channels/channel-accounts.ts";
import { joinNodes, leaveNodes, noteTakeovers, sayAlive, sweepNodes, type ThisNode } from "../../src/records/nodes/nodes.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const LEASE_MS = 100_000;
/** Of a lease, on a machine that is busy: it has not ended yet, and then it has. */
const NEARLY_MS = 70_000;
const REST_MS = 30_000;
const UP = { state: "up", revision: 1, problem: null } as const;
const node = (id: string, more: Partial<ThisNode> = {}): ThisNode => ({
  id,
  name: id,
  home: `home of ${id}`,
  version: "1.0.0",
  url: `http://${id}`,
  labels: [],
  leaseMs: LEASE_MS,
  ...more,
});

describe.each(PLACES)("nodes on %s", (_database, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const join = (one: ThisNode): Promise<string[]> => joinNodes(store, one, UP);
  const seen = () => store.snapshot((reads) => viewNodes(reads, "here"));
  const states = async () => Object.fromEntries((await seen()).nodes.map(({ id, state }) => [id, state]));
  const told = async () =>
    (await store.ledger.read(0, 1_000))
      .filter(({ type }) => type.startsWith("node."))
      .map(({ type, subject, actor, data }) => [type, subject[1], actor, data]);
  const hold = async (owner: string, count: number, kind = "turn", ttlMs = LEASE_MS): Promise<void> => {
    for (let nth = 0; nth < count; nth++) await store.transact("add", (tx) => store.queue.enqueue(tx, { kind, payload: null }));
    expect(await store.queue.claim(owner, count, ttlMs, [kind])).toHaveLength(count);
  };

  test("a node that is not heard of for its lease is lost: told once, by whoever looks first, with all it held", async () => {
    await join(node("a"));
    await join(node("b"));
    await join(node("c"));
    await hold("a", 3, "turn", NEARLY_MS);
    await place.elapse(NEARLY_MS);
    for (const id of ["b", "c"]) expect(await sayAlive(store, id, UP)).toBe(true);
    await sweepNodes(store, "b");
    // One of the three was taken over before anybody noticed.
    const { taken } = await store.queue.reap();
    expect(taken).toEqual(new Map([["a", 3]]));
    await noteTakeovers(store, new Map([["a", 2]]));
    await hold("a", 1);
    expect(await states()).toEqual({ a: "up", b: "up", c: "up" });
    await place.elapse(REST_MS);
    expect(await states()).toEqual({ a: "gone", b: "up", c: "up" });
    const other = await place.open();
    await Promise.all([sweepNodes(store, "b"), sweepNodes(other, "c"), sweepNodes(store, "b")]);
    const lost = (await told()).filter(([type]) => type === "node.lost");
    expect(lost).toEqual([["node.lost", "a", expect.stringMatching(/^[bc]$/), { name: "a", seenAt: expect.any(Number), held: 3 }]]);
  });

  test("one that was lost and is heard of again joins again; it is not lost by its own word", async () => {
    await join(node("a"));
    await join(node("b"));
    await place.elapse(LEASE_MS);
    await sweepNodes(store, "a");
    expect((await told()).flatMap(([type, id]) => (type === "node.lost" ? [id] : []))).toEqual(["b"]);
    expect(await sayAlive(store, "a", UP)).toBe(true);
    expect(await sayAlive(store, "b", UP)).toBe(false);
    await hold("b", 1);
    const presence = new Presence(store, node("b"), () => ({ revision: 1, problem: null }), SILENT);
    await presence.begin();
    expect(await states()).toEqual({ a: "up", b: "up" });
    expect((await told()).map(([type, id]) => [type, id])).toEqual([
      ["node.joined", "a"],
      ["node.joined", "b"],
      ["node.lost", "b"],
      ["node.joined", "b"],
    ]);
    // It is the same life: what it holds is still its own.
    expect(await store.queue.reap()).toMatchObject({ revived: 0 });
    presence.drain();
    await expect.poll(states).toEqual({ a: "up", b: "draining" });
    presence.drain();
    await presence.end();
    expect(await states()).toEqual({ a: "up" });
    expect((await told()).at(-1)).toEqual(["node.left", "b", "b", { name: "b" }]);
  });

  test("a node that is gone is shown for a day", async () => {
    await join(node("a"));
    await join(node("b"));
    await place.elapse(23 * 3_600_000);
    await sayAlive(store, "a", UP);
    await sweepNodes(store, "a");
    expect(await states()).toEqual({ a: "up", b: "gone" });
    await place.elapse(3_600_000);
    await sayAlive(store, "a", UP);
    await sweepNodes(store, "a");
    expect(await states()).toEqual({ a: "up" });
  });

  test("a name is one node's: another home is refused it until the first is gone, and then takes nothing from it", async () => {
    await join(node("a"));
    await hold("a", 1, "turn", 10 * LEASE_MS);
    const second = node("a2", { name: "a" });
    if (place.kind === "sqlite") return expect(await join(second)).toEqual([]);
    await expect(join(second)).rejects.toMatchObject({ code: "node.name_taken", message: expect.stringContaining("http://a") });
    await place.elapse(NEARLY_MS);
    await expect(join(second)).rejects.toMatchObject({ code: "node.name_taken" });
    await place.elapse(REST_MS);
    const both = await Promise.allSettled([join(second), joinNodes(await place.open(), node("a3", { name: "a" }), UP)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(both.find(({ status }) => status === "fulfilled")).toMatchObject({ value: [] });
    expect((await seen()).orphaned).toMatchObject([{ node: "a", name: null, count: 1 }]);
    expect(await store.queue.reap()).toMatchObject({ revived: 0 });
  });

  test("a life that begins on a home frees at once what the one before held there, and tells that it was lost", async () => {
    await join(node("first", { name: "a", home: "h" }));
    await hold("first", 2);
    await store.leases.acquire(accountLease({ platform: "telegram", account: "default" }), "first", LEASE_MS);
    await new Presence(store, node("second", { name: "renamed", home: "h" }), () => ({ revision: 1, problem: null }), SILENT).begin();
    expect(await states()).toEqual({ second: "up" });
    expect((await told()).map(([type, id]) => [type, id])).toEqual([
      ["node.joined", "first"],
      ["node.lost", "first"],
      ["node.joined", "second"],
    ]);
    expect((await told())[1]?.[3]).toMatchObject({ name: "a", held: 2 });
    expect(await store.queue.reap()).toMatchObject({ revived: 2, taken: new Map([["first", 2]]) });
    expect(await store.leases.acquire(accountLease({ platform: "telegram", account: "default" }), "second", LEASE_MS)).toMatchObject({
      held: true,
    });
  });

  test("one look shows what each node holds, what waits, and what a node that is gone has left until when", async () => {
    await join(node("a", { labels: ["gpu"] }));
    await join(node("b"));
    await join(node("dead"));
    await hold("a", 2);
    await hold("a", 1, "delivery");
    await hold("b", 1, "remote");
    await hold("dead", 2, "turn", 4 * LEASE_MS);
    await hold("nobody", 1, "turn", 2 * LEASE_MS);
    for (const [platform, account, holder] of [
      ["telegram", "work/here", "a"],
      ["slack", "default", "a"],
      ["discord", "default", "dead"],
    ] as const)
      await store.leases.acquire(accountLease({ platform, account }), holder, 2 * LEASE_MS);
    await store.leases.acquire(["something", "else"], "a", LEASE_MS);
    const add = (more: object) => store.transact("add", (tx) => store.queue.enqueue(tx, { kind: "turn", payload: null, ...more }));
    await add({ lane: ["l"] });
    await add({ lane: ["l"] });
    await add({ delayMs: 60_000_000 });
    await add({ kind: "sick", maxAttempts: 1 });
    const [sick] = await store.queue.claim("b", 1, LEASE_MS, ["sick"]);
    await store.transact("fail", (tx) => store.queue.retry(tx, sick as NonNullable<typeof sick>, "sick"));
    await place.elapse(NEARLY_MS);
    await sayAlive(store, "a", { state: "up", revision: 0, problem: "its file cannot be read" });
    await sayAlive(store, "b", { state: "draining", revision: 0, problem: null });
    await place.elapse(REST_MS);
    await store.sealer.seal("a");
    await store.transact("one more", (tx) => store.ledger.append(tx, { type: "node.left", actor: "x", subject: ["node", "x"] }));

    const view = nodeList.parse(await seen());
    const [a, b, dead] = view.nodes;
    expect(a).toMatchObject({
      id: "a",
      state: "up",
      turns: 2,
      deliveries: 1,
      remote: 0,
      labels: ["gpu"],
      problem: "its file cannot be read",
    });
    expect(a?.accounts).toEqual([
      { platform: "slack", account: "default" },
      { platform: "telegram", account: "work/here" },
    ]);
    expect(a?.lagMs).toBeGreaterThanOrEqual(REST_MS);
    expect(a?.lagMs).toBeLessThan(LEASE_MS);
    expect(view.now - (a?.oldestSince ?? 0)).toBeGreaterThanOrEqual(LEASE_MS);
    expect(b).toMatchObject({ id: "b", state: "draining", turns: 0, remote: 1, accounts: [] });
    expect(dead).toMatchObject({ id: "dead", state: "gone", turns: 2, accounts: [{ platform: "discord", account: "default" }] });
    expect(view.waiting).toEqual([
      { kind: "sick", ready: 0, queued: 0, parked: 0, dead: 1, oldestMs: null },
      { kind: "turn", ready: 1, queued: 1, parked: 1, dead: 0, oldestMs: expect.any(Number) },
    ]);
    expect(view.waiting[1]?.oldestMs).toBeGreaterThanOrEqual(LEASE_MS);
    expect(view.orphaned.map(({ node: id, name, count }) => [id, name, count])).toEqual([
      ["dead", "dead", 2],
      ["nobody", null, 1],
    ]);
    const [left, unknown] = view.orphaned.map(({ until }) => until - view.now);
    expect(left).toBeGreaterThan(2 * LEASE_MS);
    expect(left).toBeLessThanOrEqual(3 * LEASE_MS);
    expect(unknown).toBeLessThanOrEqual(LEASE_MS);
    expect(view.unsealed).toBe(1);

    const found = nodeFindings(view, "1.1.0").map(
      ({ id, severity, found: words }) => `${severity} ${id}: ${words.replace(/1\d\d s/, "1__ s")}`,
    );
    expect(found).toEqual([
      "ok nodes: 2 running: a (1.0.0, http://a), b (1.0.0, http://b, stopping)",
      "warning versions.nodes: versions side by side: 1.0.0, 1.1.0",
      "warning node.dead: not heard of for 1__ s",
      "warning node.a: runs config 0, the newest is 0: its file cannot be read",
      "warning takeover: 3 items are held by nodes that are gone",
    ]);
  });

  test("leaving a second time, or as one that nobody knows, tells nothing", async () => {
    await join(node("a"));
    await leaveNodes(store, "a");
    await leaveNodes(store, "a");
    await leaveNodes(store, "b");
    expect((await told()).map(([type]) => type)).toEqual(["node.joined", "node.left"]);
  });
});

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
