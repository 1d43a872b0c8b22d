import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IdempotentRequest } from "../../src/store/idempotency.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const LEASE = 30_000;
const KEEP = 24 * 3_600_000;

describe.each(PLACES)("idempotency on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const request = (key = "k1", body = "hash-a"): IdempotentRequest => ({ scope: ["alice", "POST", "/api/mail"], key, request: body });
  const begin = (wanted = request(), node = store) => node.idempotency.begin(wanted, LEASE, KEEP);
  const start = async (wanted = request()): Promise<number> => {
    const begun = await begin(wanted);
    if (begun.state !== "started") throw new Error(begun.state);
    return begun.fence;
  };
  const effect = (fence: number, wanted = request()) =>
    store.transact("effect", async (tx) => {
      await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: ["effect"] });
      await store.idempotency.finish(tx, wanted, fence, { answer: fence });
    });
  const effects = async () => (await store.ledger.read(0, 100)).length;

  test("the same request again gets the first answer (E1)", async () => {
    const fence = await start();
    await effect(fence);
    expect(await begin()).toEqual({ state: "replay", result: { answer: fence } });
    expect(await effects()).toBe(1);
  });

  test("another body under the same key is a conflict (E1)", async () => {
    await effect(await start());
    expect(await begin(request("k1", "hash-b"))).toEqual({ state: "conflict" });
  });

  test("while the first is running, nobody else starts (E1)", async () => {
    const other = await place.open();
    const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => begin(request(), index % 2 ? store : other)));
    expect(answers.filter((answer) => answer.state === "started")).toHaveLength(1);
    expect(answers.filter((answer) => answer.state === "in-progress")).toHaveLength(11);
  });

  test("a runner that died is followed by another, and can no longer have its effect", async () => {
    const dead = await start();
    expect((await begin()).state).toBe("in-progress");
    await place.elapse(LEASE + 1);
    const alive = await start();
    expect(alive).toBeGreaterThan(dead);
    await expect(effect(dead)).rejects.toMatchObject({ code: "fence.stale" });
    await effect(alive);
    expect(await effects()).toBe(1);
    expect(await begin()).toEqual({ state: "replay", result: { answer: alive } });
  });

  test("giving up frees the key at once, and only the runner's own", async () => {
    const fence = await start();
    await store.idempotency.abandon(request(), fence + 1_000);
    expect((await begin()).state).toBe("in-progress");
    await store.idempotency.abandon(request(), fence);
    expect((await begin()).state).toBe("started");
  });

  test("an answer is kept for its time and not longer", async () => {
    await effect(await start());
    await place.elapse(KEEP - 60_000);
    expect((await begin()).state).toBe("replay");
    await place.elapse(60_001);
    expect((await begin(request("k1", "hash-b"))).state).toBe("started");
  });

  test("sweeping removes what has expired and nothing else", async () => {
    await effect(await start(request("old")), request("old"));
    await place.elapse(KEEP + 1);
    await effect(await start(request("new")), request("new"));
    expect(await store.idempotency.sweep()).toBe(1);
    expect((await begin(request("new"))).state).toBe("replay");
  });

  test("the same key of another identity or path is another record", async () => {
    await start();
    expect((await begin({ ...request(), scope: ["bob", "POST", "/api/mail"] })).state).toBe("started");
    expect((await begin({ ...request(), scope: ["alice", "POST/api", "mail"] })).state).toBe("started");
  });

  test("an effect that needs no more than one transaction begins and ends in it", async () => {
    const once = () =>
      store.transact("once", async (tx) => {
        const begun = await store.idempotency.beginIn(tx, request("one"), LEASE, KEEP);
        if (begun.state !== "started") return begun.state;
        await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: ["effect"] });
        await store.idempotency.finish(tx, request("one"), begun.fence, "done");
        return begun.state;
      });
    const states = await Promise.all(Array.from({ length: 10 }, once));
    expect(states.filter((state) => state === "started")).toHaveLength(1);
    expect(await effects()).toBe(1);
    expect(await begin(request("one"))).toEqual({ state: "replay", result: "done" });
  });
});
