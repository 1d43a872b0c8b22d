import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { canonicalJson, sha256 } from "../../src/kernel/canonical-json.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const append = (store: Store, ...names: string[]) =>
  store.transact("append", (tx) =>
    store.ledger.append(
      tx,
      ...names.map((name) => ({ type: "daemon.started" as const, actor: "test", subject: ["events", name], data: { name } })),
    ),
  );

const nameOf = (event: LedgerEvent): string => event.subject[1] as string;

async function take(store: Store, after: number, count: number): Promise<LedgerEvent[]> {
  const stop = new AbortController();
  const events: LedgerEvent[] = [];
  for await (const event of store.follow(after, stop.signal)) {
    events.push(event);
    if (events.length === count) break;
  }
  stop.abort();
  return events;
}

describe.each(PLACES)("the ledger on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  test("events of one transaction are numbered in the order they were given", async () => {
    const seqs = await append(store, "a", "b", "c");
    expect(seqs).toEqual([...seqs].sort((x, y) => x - y));
    expect((await store.ledger.read(0, 10)).map(nameOf)).toEqual(["a", "b", "c"]);
    expect((await store.ledger.read(seqs[0] as number, 10)).map(nameOf)).toEqual(["b", "c"]);
  });

  test("the last so many are found, whatever gaps there are between their numbers", async () => {
    const first = await append(store, "a", "b");
    if (store.kind === "sqlite") await store.ledger.skipLostNumbers();
    else await place.tamper("select nextval('ledger_seq')");
    await append(store, "c", "d");
    const last = async (count: number) => (await store.ledger.read(await store.ledger.beforeLast(count), 10)).map(nameOf);
    expect([await last(0), await last(2), await last(3), await last(9)]).toEqual([[], ["c", "d"], ["b", "c", "d"], ["a", "b", "c", "d"]]);
    expect((await store.ledger.read(first[1] as number, 1))[0]?.seq).toBeGreaterThan((first[1] as number) + 1);
  });

  test("an event carries who, about what, because of what, and its data", async () => {
    const [cause] = await append(store, "cause");
    const seqs = await store.transact("append", (tx) =>
      store.ledger.append(tx, {
        type: "turn.started",
        actor: "agent:coder",
        subject: ["a/b", "c%"],
        causedBy: cause as number,
        data: { n: [1, null] },
      }),
    );
    const [event] = await store.ledger.read(cause as number, 10);
    expect(event).toMatchObject({
      seq: seqs[0],
      type: "turn.started",
      actor: "agent:coder",
      subject: ["a/b", "c%"],
      causedBy: cause,
      data: { n: [1, null] },
    });
    expect(event?.at).toBeGreaterThan(0);
  });

  test("reading about a subject sees what is below it and no namesake", async () => {
    for (const subject of [["users", "1"], ["users", "12"], ["users", "1", "notes"], ["users"], ["users/1"]]) {
      await store.transact("append", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject }));
    }
    const subjects = (await store.ledger.read(0, 10, ["users", "1"])).map((event) => event.subject);
    expect(subjects).toEqual([
      ["users", "1"],
      ["users", "1", "notes"],
    ]);
  });

  test("a follower gets every event once and in order, those before it came and those after", async () => {
    await append(store, "0", "1", "2");
    const following = take(store, 0, 60);
    for (let index = 3; index < 60; index++) await append(store, `${index}`);
    expect((await following).map(nameOf)).toEqual(Array.from({ length: 60 }, (_, index) => `${index}`));
  });

  test("a follower can go on from any number", async () => {
    const seqs = await append(store, "a", "b", "c", "d");
    expect((await take(store, seqs[1] as number, 2)).map(nameOf)).toEqual(["c", "d"]);
  });

  test("a follower on another node sees what this node writes", async () => {
    const other = await place.open();
    const following = take(other, 0, 5);
    await append(store, "a", "b");
    await append(store, "c", "d", "e");
    expect((await following).map(nameOf)).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("what is committed here is told without being read again, and in its order with what others write", async () => {
    const other = await place.open();
    const following = take(store, 0, 9);
    await append(store, "a");
    // From here on the follower is caught up.
    await sleep(50);
    const all = vi.spyOn(store.read, "all");
    await append(store, "b", "c");
    await append(store, "d");
    await sleep(50);
    const reads = all.mock.calls.filter(([strings]) => strings.join("").includes("from ledger")).length;
    if (store.kind === "sqlite") expect(reads).toBe(0);
    all.mockRestore();
    await append(other, "e");
    await append(store, "f");
    await append(other, "g");
    await append(store, "h", "i");
    const events = await following;
    expect(events.map(nameOf).join("")).toBe("abcdefghi");
    expect(events).toEqual(await store.ledger.read(0, 100));
    await other.close();
  });

  test("however much comes at once, what all who follow have not seen is read once for all of them", async () => {
    await append(store, "first");
    const following = Array.from({ length: 50 }, () => take(store, 0, 1_001));
    await sleep(50);
    const all = vi.spyOn(store.read, "all");
    const names = Array.from({ length: 1_000 }, (_, index) => `${index}`);
    await append(store, ...names);
    for (const events of await Promise.all(following)) expect(events.map(nameOf)).toEqual(["first", ...names]);
    const reads = all.mock.calls.filter(([strings]) => strings.join("").includes("from ledger")).length;
    all.mockRestore();
    expect(reads).toBeLessThan(10);
  });

  test("what was taken back is told to nobody, and what it was to be told under comes to another", async () => {
    const following = take(store, 0, 3);
    await append(store, "a");
    await sleep(50);
    const fails = store.transact("fails", async (tx) => {
      await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: ["events", "never"] });
      throw new Error("no");
    });
    const [, , failed] = await Promise.allSettled([append(store, "b"), append(store, "c"), fails]);
    expect(failed?.status).toBe("rejected");
    const events = await following;
    expect(events.map(nameOf).toSorted().join("")).toBe("abc");
    expect(events).toEqual(await store.ledger.read(0, 100));
  });

  test("many followers and concurrent writers: everybody sees the same order without gaps", async () => {
    const followers = Array.from({ length: 8 }, () => take(store, 0, 200));
    await Promise.all(Array.from({ length: 200 }, (_, index) => append(store, `${index}`)));
    const [first, ...others] = await Promise.all(followers);
    expect(new Set(first?.map(nameOf)).size).toBe(200);
    for (const other of others) expect(other.map((event) => event.seq)).toEqual(first?.map((event) => event.seq));
  });

  // SQLite has one writer: a second transaction cannot commit while the first is open, so nothing can commit late.
  test.skipIf(makePlace.name !== "sqlitePlace")(
    "after an end without order no number is given twice; after one in order none is left out",
    async () => {
      const stopped = () =>
        store.transact("append", (tx) => store.ledger.append(tx, { type: "daemon.stopped", actor: "test", subject: ["node", "n"] }));
      await store.ledger.skipLostNumbers();
      const [first] = await append(store, "a");
      await store.ledger.skipLostNumbers();
      const [second] = await append(store, "b");
      const [third] = await stopped();
      await store.ledger.skipLostNumbers();
      const [fourth] = await append(store, "c");
      expect([first, second, third, fourth]).toEqual([1, 10_002, 10_003, 10_004]);
    },
  );

  test.skipIf(makePlace.name === "sqlitePlace")("an event that commits late with a smaller number is not skipped", async () => {
    const other = await place.open();
    let commit: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      commit = resolve;
    });
    let drawn: () => void = () => {};
    const hasDrawn = new Promise<void>((resolve) => {
      drawn = resolve;
    });
    const late = store.transact("late", async (tx) => {
      await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: ["events", "late"] });
      drawn();
      await held;
    });
    await hasDrawn;
    const [quick] = await append(other, "quick");
    expect(await other.ledger.horizon()).toBeLessThan(quick as number);
    expect((await other.ledger.read(0, 10)).map(nameOf)).toEqual([]);
    const following = take(other, 0, 2);
    commit();
    await late;
    expect((await following).map(nameOf)).toEqual(["late", "quick"]);
  });

  test("a number that was rolled back does not hold the others up", async () => {
    await store
      .transact("rolled back", async (tx) => {
        await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: ["events", "never"] });
        throw new Error("no");
      })
      .catch(() => {});
    await append(store, "after");
    expect((await store.ledger.read(0, 10)).map(nameOf)).toEqual(["after"]);
  });

  test("readers that read page by page while many write see each event exactly once", async () => {
    let writing = true;
    const seen: number[] = [];
    const reader = (async () => {
      let after = 0;
      while (true) {
        const last = !writing;
        const page = await store.ledger.read(after, 7);
        for (const event of page) seen.push(event.seq);
        after = page.at(-1)?.seq ?? after;
        if (last && page.length === 0) return;
      }
    })();
    const written = await Promise.all(Array.from({ length: 150 }, (_, index) => append(store, `${index}`, `${index}+`)));
    writing = false;
    await reader;
    expect(seen).toEqual(written.flat().sort((a, b) => a - b));
  });

  describe("sealing", () => {
    test("the chain holds over several seals, and another node continues it", async () => {
      await append(store, "a", "b");
      expect(await store.sealer.seal("one")).toBe(2);
      await append(store, "c");
      const other = await place.open();
      expect(await other.sealer.seal("two")).toBe(1);
      expect(await other.sealer.seal("two")).toBe(0);
      expect(await store.sealer.verify()).toEqual({ ok: true, seals: 2, events: 3 });
    });

    test("a seal is the hash of what was sealed before and of each event's canonical JSON, as older programs have it", async () => {
      await append(store, "a", '"b"');
      const [caused] = await store.transact("append", (tx) =>
        store.ledger.append(tx, {
          type: "turn.started",
          actor: "main",
          subject: ["run", "1"],
          causedBy: 1,
          data: { z: 1, a: [null, "é"] },
        }),
      );
      const events = await store.ledger.read(0, 10);
      expect(events.at(-1)).toMatchObject({ seq: caused, causedBy: 1 });
      await store.sealer.seal("one");
      const seal = await store.read.get<{ hash: string }>`select hash from seals where id = 1`;
      expect(seal?.hash).toBe(sha256(`\n${events.map(canonicalJson).join("\n")}`));
    });

    test.each([
      ["changed", 'update ledger set data = \'{"name":"forged"}\' where seq = 2'],
      ["removed", "delete from ledger where seq = 2"],
      ["added", "insert into ledger (seq, at, type, actor, subject, data) values (-5, 1, 'daemon.started', 'x', 'x/', 'null')"],
      ["re-sealed without its predecessor", "update seals set previous = 'x' where id = 1"],
    ])("an event that was %s is found", async (_how, statement) => {
      await append(store, "a", "b", "c");
      await store.sealer.seal("one");
      await place.tamper(statement);
      expect((await store.sealer.verify()).ok).toBe(false);
    });

    test("two sealers at once never seal an event twice", async () => {
      const other = await place.open();
      for (let round = 0; round < 5; round++) {
        await append(store, "x", "y", "z");
        await Promise.all([store.sealer.seal("one"), other.sealer.seal("two")]);
      }
      await store.sealer.seal("one");
      expect(await store.sealer.verify()).toMatchObject({ ok: true, events: 15 });
    });
  });
});
