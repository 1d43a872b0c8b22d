import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork, NewWork } from "../../src/store/work-queue.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const TTL = 60_000;

describe.each(PLACES)("the work queue on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const enqueue = (work: Partial<NewWork> & { payload?: unknown }) =>
    store.transact("enqueue", (tx) => store.queue.enqueue(tx, { kind: "test", payload: null, ...work }));
  const claimOne = async (owner = "me"): Promise<ClaimedWork> => {
    const [work] = await store.queue.claim(owner, 1, TTL);
    if (!work) throw new Error("nothing to claim");
    return work;
  };
  const now = async () => (await store.read.get<{ at: number }>`select now_ms() as at`)?.at as number;
  const payloads = (claims: readonly ClaimedWork[]) => claims.map((work) => work.payload);

  test("an item exists only when its transaction commits", async () => {
    await store
      .transact("rolled back", async (tx) => {
        await store.queue.enqueue(tx, { kind: "test", payload: 1 });
        throw new Error("no");
      })
      .catch(() => {});
    expect(await store.queue.claim("me", 10, TTL)).toEqual([]);
  });

  test("urgent items come first, then the oldest", async () => {
    for (const [payload, priority] of [
      ["a", 0],
      ["b", 0],
      ["c", 5],
      ["d", 5],
    ] as const)
      await enqueue({ payload, priority });
    const taken: unknown[] = [];
    for (let index = 0; index < 4; index++) taken.push((await claimOne()).payload);
    expect(taken).toEqual(["c", "d", "a", "b"]);
  });

  test("a claim takes only the kinds it asked for", async () => {
    await enqueue({ kind: "turn", payload: 1 });
    await enqueue({ kind: "send", payload: 2 });
    expect(payloads(await store.queue.claim("me", 10, TTL, ["send", "other"]))).toEqual([2]);
    expect(payloads(await store.queue.claim("me", 10, TTL))).toEqual([1]);
  });

  test("an item that is claimed as it is added is its owner's like any other: fenced, renewed, taken over, and first of its lane", async () => {
    const add = (payload: string, lane = "l") =>
      store.transact(
        "take",
        (tx) =>
          store.queue.enqueueTaken(
            tx,
            { kind: "test", payload, lane: [lane], tenant: { name: "t", weight: 1 } },
            { owner: "me", ttlMs: TTL },
          ),
        "locked",
      );
    const first = (await add("first")) as ClaimedWork;
    expect(first).toMatchObject({ fence: 1, attempt: 1, payload: "first", tenant: "t" });
    // What stands behind it waits for it, whoever added it.
    expect(await add("second")).toBeNull();
    expect(await store.queue.claim("other", 10, TTL)).toEqual([]);
    expect(await store.queue.renew([first], TTL)).toEqual(new Set([first.id]));
    await place.elapse(TTL + 1);
    expect(await store.queue.reap()).toBeTruthy();
    const [again] = await store.queue.claim("other", 1, TTL);
    expect(again).toMatchObject({ id: first.id, fence: 2, attempt: 2, payload: "first" });
    await expect(store.transact("settle", (tx) => store.queue.settle(tx, first), "locked")).rejects.toMatchObject({ code: "fence.stale" });
    await store.transact("settle", (tx) => store.queue.settle(tx, again as ClaimedWork), "locked");
    expect(payloads(await store.queue.claim("other", 10, TTL))).toEqual(["second"]);
  });

  test("a delayed item waits for its time by the database's clock", async () => {
    await enqueue({ payload: "later", delayMs: 30_000 });
    expect(await store.queue.claim("me", 10, TTL)).toEqual([]);
    await place.elapse(30_001);
    await store.queue.wait(store.queue.version(), new AbortController().signal);
    expect(payloads(await store.queue.claim("me", 10, TTL))).toEqual(["later"]);
  });

  test("many claimers at once take every item exactly once", async () => {
    const other = await place.open();
    await store.transact("enqueue", async (tx) => {
      for (let index = 0; index < 100; index++) await store.queue.enqueue(tx, { kind: "test", payload: index });
    });
    const taken = await Promise.all(Array.from({ length: 30 }, (_, index) => (index % 2 ? store : other).queue.claim(`w${index}`, 7, TTL)));
    expect(
      taken
        .flat()
        .map((work) => work.payload as number)
        .sort((a, b) => a - b),
    ).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });

  describe("lanes", () => {
    test("items of one lane run one at a time, in the order they came", async () => {
      for (let index = 0; index < 5; index++) await enqueue({ payload: index, lane: ["session", "a"] });
      await enqueue({ payload: "other lane", lane: ["session", "b"] });
      const first = await store.queue.claim("me", 10, TTL);
      expect(payloads(first)).toEqual([0, "other lane"]);
      const order: unknown[] = [];
      let current = first[0] as ClaimedWork;
      while (true) {
        order.push(current.payload);
        await store.queue.settleAll([current]);
        const [next] = await store.queue.claim("me", 10, TTL);
        if (!next) break;
        current = next;
      }
      expect(order).toEqual([0, 1, 2, 3, 4]);
    });

    test("names that only look alike are different lanes", async () => {
      await enqueue({ payload: 1, lane: ["a/b"] });
      await enqueue({ payload: 2, lane: ["a", "b"] });
      expect(payloads(await store.queue.claim("me", 10, TTL)).sort()).toEqual([1, 2]);
    });

    test("a head that waits for its retry holds its lane; so does one that is dead, until it is removed", async () => {
      await enqueue({ payload: "head", lane: ["l"], maxAttempts: 2 });
      await enqueue({ payload: "next", lane: ["l"] });
      const head = await claimOne();
      expect(await store.transact("retry", (tx) => store.queue.retry(tx, head, "broken", 10_000))).toBe("later");
      expect(await store.queue.claim("me", 10, TTL)).toEqual([]);
      await place.elapse(10_001);
      expect(await store.queue.reap()).toMatchObject({ revived: 1, buried: 0 });
      const again = await claimOne();
      expect(again).toMatchObject({ payload: "head", attempt: 2 });
      expect(await store.transact("retry", (tx) => store.queue.retry(tx, again, "still broken"))).toBe("dead");
      expect(await store.queue.claim("me", 10, TTL)).toEqual([]);
      const [dead] = await store.queue.dead(10);
      expect(dead).toMatchObject({ payload: "head", attempts: 2, error: "still broken" });
      expect(await store.transact("bury", (tx) => store.queue.cancel(tx, dead?.id as number))).toBe(true);
      expect((await claimOne()).payload).toBe("next");
    });

    test("a parked item keeps its lane", async () => {
      await enqueue({ payload: "parent", lane: ["l"] });
      await enqueue({ payload: "next", lane: ["l"] });
      const parent = await claimOne();
      await store.transact("park", (tx) => store.queue.park(tx, parent, 60_000));
      expect(await store.queue.claim("me", 10, TTL)).toEqual([]);
      await store.transact("unpark", (tx) => store.queue.unpark(tx, parent.id));
      expect((await claimOne()).payload).toBe("parent");
    });

    test("removing an item from the middle or the head of a lane leaves the rest in order", async () => {
      const ids: number[] = [];
      for (let index = 0; index < 4; index++) ids.push(await enqueue({ payload: index, lane: ["l"] }));
      await store.transact("cancel", (tx) => store.queue.cancel(tx, ids[1] as number));
      await store.transact("cancel", (tx) => store.queue.cancel(tx, ids[0] as number));
      const order: unknown[] = [];
      for (let index = 0; index < 2; index++) {
        const work = await claimOne();
        order.push(work.payload);
        await store.queue.settleAll([work]);
      }
      expect(order).toEqual([2, 3]);
      expect(await store.queue.counts()).toEqual({});
    });

    test("entering and leaving at the same time never leaves a lane stuck", async () => {
      const other = await place.open();
      let settled = 0;
      const producers = Array.from({ length: 60 }, (_, index) =>
        (index % 2 ? store : other).transact("enqueue", (tx) => store.queue.enqueue(tx, { kind: "test", payload: index, lane: ["busy"] })),
      );
      const consumer = (node: Store) =>
        (async () => {
          while (settled < 60) {
            const claims = await node.queue.claim("me", 5, TTL);
            expect(claims.length).toBeLessThanOrEqual(1);
            const { size } = await node.queue.settleAll(claims);
            settled += size;
            if (claims.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
          }
        })();
      await Promise.all([...producers, consumer(store), consumer(other)]);
      expect(settled).toBe(60);
      expect(await store.queue.counts()).toEqual({});
    });

    test("two nodes never run two items of one lane at the same time", async () => {
      const other = await place.open();
      await store.transact("enqueue", async (tx) => {
        for (let index = 0; index < 40; index++)
          await store.queue.enqueue(tx, { kind: "test", payload: `${index % 4}`, lane: ["lane", `${index % 4}`] });
      });
      const running = new Set<string>();
      let done = 0;
      const work = async (node: Store): Promise<void> => {
        while (done < 40) {
          const claims = await node.queue.claim("me", 3, TTL);
          for (const claim of claims) {
            expect(running.has(claim.payload as string)).toBe(false);
            running.add(claim.payload as string);
          }
          await new Promise((resolve) => setTimeout(resolve, 1));
          for (const claim of claims) running.delete(claim.payload as string);
          const { size } = await node.queue.settleAll(claims);
          done += size;
        }
      };
      await Promise.all([work(store), work(other), work(store)]);
      expect(done).toBe(40);
    });
  });

  describe("claims", () => {
    test("an item whose owner was silent for too long goes to another, with a larger fence", async () => {
      await enqueue({ payload: 1 });
      const first = await claimOne("first");
      await place.elapse(TTL + 1);
      await store.queue.reap();
      const second = await claimOne("second");
      expect(second.fence).toBeGreaterThan(first.fence);
      expect(await store.queue.settleAll([first])).toEqual(new Set());
      await expect(store.transact("settle", (tx) => store.queue.settle(tx, first))).rejects.toMatchObject({ code: "fence.stale" });
      await expect(store.transact("guard", (tx) => store.queue.guard(tx, first))).rejects.toMatchObject({ code: "fence.stale" });
      expect(await store.queue.settleAll([second])).toEqual(new Set([second.id]));
    });

    test("a stale owner's other writes are taken back with its settling", async () => {
      await enqueue({ payload: 1 });
      const first = await claimOne("first");
      await place.elapse(TTL + 1);
      await store.queue.reap();
      await claimOne("second");
      await store
        .transact("zombie", async (tx) => {
          await store.ledger.append(tx, { type: "turn.completed", actor: "zombie", subject: ["x"] });
          await store.queue.settle(tx, first);
        })
        .catch(() => {});
      expect(await store.ledger.read(0, 10)).toEqual([]);
    });

    test("renewing keeps a claim alive; one that ran out is not revived", async () => {
      await enqueue({ payload: 1 });
      await enqueue({ payload: 2 });
      const [first, second] = await store.queue.claim("me", 2, 10_000);
      if (!first || !second) throw new Error("nothing to claim");
      await place.elapse(8_000);
      expect(await store.queue.renew([first], 10_000)).toEqual(new Set([first.id]));
      await place.elapse(8_000);
      expect(await store.queue.renew([first, second], 10_000)).toEqual(new Set([first.id]));
      expect(await store.queue.reap()).toMatchObject({ revived: 1, buried: 0 });
      expect((await claimOne()).id).toBe(second.id);
    });

    test("an item that is cancelled while it runs cannot be settled by its owner", async () => {
      const id = await enqueue({ payload: 1 });
      const claim = await claimOne();
      await store.transact("cancel", (tx) => store.queue.cancel(tx, id));
      await expect(store.transact("settle", (tx) => store.queue.settle(tx, claim))).rejects.toMatchObject({ code: "fence.stale" });
    });

    test("a poison item that takes every owner down ends as a dead letter", async () => {
      await enqueue({ payload: "poison", maxAttempts: 3, lane: ["l"] });
      await enqueue({ payload: "next", lane: ["l"] });
      for (let attempt = 1; attempt <= 3; attempt++) {
        expect(await claimOne()).toMatchObject({ attempt });
        await place.elapse(TTL + 1);
        await store.queue.reap();
      }
      expect(await store.queue.claim("me", 10, TTL)).toEqual([]);
      const [dead] = await store.queue.dead(10);
      expect(dead).toMatchObject({ payload: "poison", attempts: 3 });
      expect(await store.transact("bury", (tx) => store.queue.cancel(tx, dead?.id as number))).toBe(true);
      expect(await claimOne()).toMatchObject({ payload: "next", attempt: 1 });
    });

    test("a node that is certain to be alone takes over at once what a dead process had claimed", async () => {
      await enqueue({ payload: 1 });
      const dead = await claimOne("dead");
      await store.queue.letGoOfAll();
      expect(await store.queue.reap()).toEqual({ revived: 1, buried: 0, taken: new Map([["dead", 1]]) });
      expect((await claimOne("alive")).fence).toBeGreaterThan(dead.fence);
    });

    test("dead letters can be listed by kind", async () => {
      for (const kind of ["turn", "send"]) await enqueue({ kind, payload: kind, maxAttempts: 1 });
      for (const claim of await store.queue.claim("me", 10, TTL)) await store.transact("retry", (tx) => store.queue.retry(tx, claim, "no"));
      expect((await store.queue.dead(10, ["send"])).map((dead) => dead.kind)).toEqual(["send"]);
      expect(await store.queue.dead(10)).toHaveLength(2);
    });

    test("handing back costs no attempt and makes the item ready at once", async () => {
      await enqueue({ payload: 1 });
      const claim = await claimOne();
      expect(await store.queue.handBack([claim])).toBe(1);
      const again = await claimOne("other");
      expect(again.attempt).toBe(1);
      expect(again.fence).toBeGreaterThan(claim.fence);
    });

    test("retries wait longer each time, with jitter, within bounds", async () => {
      await enqueue({ payload: 1, maxAttempts: 10 });
      for (const [attempt, least, most] of [
        [1, 250, 500],
        [2, 500, 1_000],
        [3, 1_000, 2_000],
      ] as const) {
        const claim = await claimOne();
        expect(claim.attempt).toBe(attempt);
        const before = await now();
        await store.transact("retry", (tx) => store.queue.retry(tx, claim, "no"));
        const row = await store.read.get<{ at: number }>`select run_at as at from work where id = ${claim.id}`;
        expect(row?.at).toBeGreaterThanOrEqual(before + least);
        expect(row?.at).toBeLessThanOrEqual((await now()) + most);
        await place.elapse(most + 1);
        await store.queue.reap();
      }
    });
  });

  describe("parking", () => {
    test("what comes before the item is parked is not lost", async () => {
      await enqueue({ payload: "parent" });
      const parent = await claimOne();
      expect(await store.transact("child is quick", (tx) => store.queue.unpark(tx, parent.id))).toBe(true);
      await store.transact("park", (tx) => store.queue.park(tx, parent, 60_000));
      expect((await claimOne()).id).toBe(parent.id);
    });

    // On SQLite nobody can claim while the child's transaction is open.
    test.skipIf(makePlace.name === "sqlitePlace")("whoever runs a woken item sees why it was woken", async () => {
      await enqueue({ payload: "parent" });
      const parent = await claimOne();
      await store.queue.handBack([parent]);
      let commit: () => void = () => {};
      const held = new Promise<void>((resolve) => {
        commit = resolve;
      });
      let touched: () => void = () => {};
      const hasTouched = new Promise<void>((resolve) => {
        touched = resolve;
      });
      const child = store.transact("child", async (tx) => {
        await store.queue.unpark(tx, parent.id);
        touched();
        await held;
      });
      await hasTouched;
      expect(await store.queue.claim("other", 1, TTL)).toEqual([]);
      commit();
      await child;
      expect((await claimOne()).id).toBe(parent.id);
    });

    test("a parked item comes back when its time is up", async () => {
      await enqueue({ payload: "parent" });
      const parent = await claimOne();
      await store.transact("park", (tx) => store.queue.park(tx, parent, 5_000));
      expect(await store.queue.reap()).toMatchObject({ revived: 0, buried: 0 });
      await place.elapse(5_001);
      expect(await store.queue.reap()).toMatchObject({ revived: 1, buried: 0 });
      expect((await claimOne()).fence).toBeGreaterThan(parent.fence);
    });

    test("only the owner can park", async () => {
      await enqueue({ payload: 1 });
      const first = await claimOne();
      await place.elapse(TTL + 1);
      await store.queue.reap();
      await claimOne();
      await expect(store.transact("park", (tx) => store.queue.park(tx, first, 1_000))).rejects.toMatchObject({ code: "fence.stale" });
    });
  });

  test("a waiting consumer is woken by an enqueue, also from another node, and not only by its next look", async () => {
    const other = await place.open();
    // SQLite is one process in the product; there only the own node can wake.
    const node = place.kind === "postgres" ? other : store;
    let isWoken = false;
    const woken = store.queue.wait(store.queue.version(), new AbortController().signal).then(() => {
      isWoken = true;
    });
    // What is added is gone when it could be found by looking; and nobody hears anything before he listens.
    await expect
      .poll(async () => {
        await node.transact("enqueue", async (tx) => {
          await node.queue.enqueue(tx, { kind: "test", payload: null });
          await tx.run`delete from work`;
        });
        return isWoken;
      })
      .toBe(true);
    await woken;
  });
});
