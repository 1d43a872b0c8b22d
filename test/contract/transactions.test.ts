import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Failure } from "../../src/kernel/failure.ts";
import type { Tx } from "../../src/store/engine.ts";
import { code } from "../../src/store/sql.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const BLOB = code("blob");
const BYTEA = code("bytea");

/** A table of numbers, as a room above would have one. */
async function counterTable(store: Store): Promise<void> {
  await store.transact("table", async (tx) => {
    await tx.run`create table numbers (name text primary key, value bigint not null)`;
  });
}

async function numberOf(reads: Pick<Tx, "get">, name: string): Promise<number | undefined> {
  return (await reads.get<{ value: number }>`select value from numbers where name = ${name}`)?.value;
}

const put = (tx: Tx, name: string, value: number) =>
  tx.run`insert into numbers (name, value) values (${name}, ${value}) on conflict (name) do update set value = excluded.value`;

describe.each(PLACES)("transactions on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    await counterTable(store);
  });
  afterEach(() => place.remove());

  test("what a body throws takes everything of it back, and nothing of its neighbours", async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) =>
        store.transact("mixed", async (tx) => {
          await put(tx, `n${index}`, index);
          await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [`n${index}`] });
          if (index % 3 === 0) throw new Error(`refused ${index}`);
          return index;
        }),
      ),
    );
    for (const [index, result] of results.entries()) {
      expect(result.status).toBe(index % 3 === 0 ? "rejected" : "fulfilled");
      expect(await numberOf(store.read, `n${index}`)).toBe(index % 3 === 0 ? undefined : index);
    }
    const events = await store.ledger.read(0, 100);
    expect(events.map((event) => event.subject[0]).sort()).toEqual(
      results.flatMap((_, index) => (index % 3 === 0 ? [] : [`n${index}`])).sort(),
    );
  });

  test("a failed statement in one body does not spoil the others of its batch", async () => {
    await store.transact("seed", (tx) => put(tx, "taken", 1));
    const results = await Promise.allSettled([
      store.transact("before", (tx) => put(tx, "before", 1)),
      store.transact("duplicate", (tx) => tx.run`insert into numbers (name, value) values ('taken', 2)`),
      store.transact("after", (tx) => put(tx, "after", 1)),
    ]);
    expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await numberOf(store.read, "taken")).toBe(1);
    expect(await numberOf(store.read, "before")).toBe(1);
    expect(await numberOf(store.read, "after")).toBe(1);
  });

  test("read-modify-write by many at once loses no update", async () => {
    await store.transact("seed", (tx) => put(tx, "sum", 0));
    await Promise.all(
      Array.from({ length: 40 }, () =>
        store.transact("increment", async (tx) => {
          await put(tx, "sum", ((await numberOf(tx, "sum")) ?? 0) + 1);
        }),
      ),
    );
    expect(await numberOf(store.read, "sum")).toBe(40);
  });

  test("two bodies that each read what the other writes do not both win (write skew)", async () => {
    await store.transact("seed", async (tx) => {
      await put(tx, "left", 1);
      await put(tx, "right", 1);
    });
    let readers = 0;
    // Where two bodies can be open at once, both read before either writes.
    const bothHaveRead = async (): Promise<void> => {
      readers++;
      for (let wait = 0; place.kind === "postgres" && readers < 2 && wait < 100; wait++) await sleep(5);
    };
    const leave = (own: string) =>
      store.transact("leave", async (tx) => {
        const present = ((await numberOf(tx, "left")) ?? 0) + ((await numberOf(tx, "right")) ?? 0);
        await bothHaveRead();
        if (present === 2) await put(tx, own, 0);
      });
    await Promise.all([leave("left"), leave("right")]);
    expect(((await numberOf(store.read, "left")) ?? 0) + ((await numberOf(store.read, "right")) ?? 0)).toBe(1);
  });

  test("a reader never sees what is not committed", async () => {
    let seen: number | undefined = -1;
    await store
      .transact("unfinished", async (tx) => {
        await put(tx, "half", 1);
        seen = await numberOf(store.read, "half");
        throw new Error("taken back");
      })
      .catch(() => {});
    expect(seen).toBeUndefined();
  });

  test("a transaction inside another is refused, and the outer one with it", async () => {
    const outer = store.transact("outer", async (tx) => {
      await put(tx, "outer", 1);
      await store.transact("inner", (inner) => put(inner, "inner", 1));
    });
    await expect(outer).rejects.toMatchObject({ code: "store.nested_transaction" });
    expect(await numberOf(store.read, "outer")).toBeUndefined();
  });

  test("work that a body started but did not wait for may open its own transaction later", async () => {
    let later: Promise<unknown> | undefined;
    const ended = Promise.withResolvers<void>();
    await store.transact("outer", async (tx) => {
      later ??= ended.promise.then(() => store.transact("later", (inner) => put(inner, "later", 1)));
      await put(tx, "outer", 1);
    });
    ended.resolve();
    await later;
    expect(await numberOf(store.read, "later")).toBe(1);
  });

  test("a transaction that has ended cannot be used", async () => {
    let kept: Tx | undefined;
    await store.transact("short", async (tx) => {
      kept = tx;
    });
    await expect(put(kept as Tx, "late", 1)).rejects.toBeInstanceOf(Failure);
    expect(await numberOf(store.read, "late")).toBeUndefined();
  });

  test("a body that swallows a failed statement does not pretend to have committed half", async () => {
    await store.transact("seed", (tx) => put(tx, "taken", 1));
    const outcome = await store
      .transact("swallow", async (tx) => {
        await put(tx, "first", 1);
        await tx.run`insert into numbers (name, value) values ('taken', 2)`.catch(() => {});
        return "told success";
      })
      .catch((error: unknown) => error);
    const first = await numberOf(store.read, "first");
    expect(outcome === "told success" ? first : undefined).toBe(outcome === "told success" ? 1 : first);
    expect(outcome === "told success").toBe(first === 1);
  });

  test("a branch of the body that goes on after the refusal writes nothing any more", async () => {
    let late: Promise<unknown> | undefined;
    const refused = store.transact("branches", async (tx) => {
      const branch = (async () => {
        await put(tx, "one", 1);
        await sleep(30);
        await put(tx, "two", 2);
      })();
      late = branch.catch(() => {});
      await Promise.all([branch, sleep(1).then(() => Promise.reject(new Error("refused")))]);
    });
    await expect(refused).rejects.toThrow("refused");
    await late;
    expect(await numberOf(store.read, "one")).toBeUndefined();
    expect(await numberOf(store.read, "two")).toBeUndefined();
  });

  test("what a body throws is not tried again, even if it reads like a broken connection", async () => {
    let runs = 0;
    const refused = store.transact("own error", async () => {
      runs++;
      throw new Error("bad socket name: Connection terminated");
    });
    await expect(refused).rejects.toThrow("bad socket name");
    expect(runs).toBe(1);
  });

  test("texts that only one of the databases could hold are refused by both", async () => {
    await expect(store.transact("nul", (tx) => put(tx, "a\0b", 1))).rejects.toMatchObject({ code: "request.malformed" });
    const long = ["x".repeat(5_000)];
    await expect(
      store.transact("long", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: long })),
    ).rejects.toMatchObject({ code: "request.too_large" });
    await expect(store.leases.acquire(long, "me", 1_000)).rejects.toMatchObject({ code: "request.too_large" });
    const request = { scope: ["s"], key: "k".repeat(5_000), request: "r" };
    await expect(store.idempotency.begin(request, 1_000, 1_000)).rejects.toMatchObject({ code: "request.too_large" });
  });

  test("fractions of a millisecond are as good as whole ones", async () => {
    await store.transact("fraction", (tx) => store.queue.enqueue(tx, { kind: "test", payload: 1, delayMs: 0.4 }));
    expect((await store.leases.acquire(["x"], "me", 1_000.5)).held).toBe(true);
  });

  test("a snapshot sees one moment, however long it looks", async () => {
    await store.transact("seed", (tx) => put(tx, "x", 1));
    const seen = await store.snapshot(async (reads) => {
      const before = await numberOf(reads, "x");
      await store.transact("change", (tx) => put(tx, "x", 2));
      return [before, await numberOf(reads, "x")];
    });
    expect(seen).toEqual([1, 1]);
    expect(await numberOf(store.read, "x")).toBe(2);
  });

  test("text, bytes, long numbers and nothing come back as they went in", async () => {
    await store.transact(
      "table",
      (tx) => tx.run`create table things (id integer primary key, t text, b ${place.kind === "sqlite" ? BLOB : BYTEA}, n bigint)`,
    );
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    const text = 'naïve \u{1F600} "quotes" \'n; drop table things; -- \n';
    await store.transact("put", (tx) => tx.run`insert into things values (1, ${text}, ${bytes}, ${2 ** 52 + 1})`);
    await store.transact("put", (tx) => tx.run`insert into things values (2, ${null}, ${null}, ${null})`);
    const rows = await store.read.all<{ t: string; b: Uint8Array; n: number }>`select t, b, n from things order by id`;
    expect(rows[0]?.t).toBe(text);
    expect(new Uint8Array(rows[0]?.b as Uint8Array)).toEqual(bytes);
    expect(rows[0]?.n).toBe(2 ** 52 + 1);
    expect(rows[1]).toMatchObject({ t: null, b: null, n: null });
  });

  test("two programs on one database take turns without anybody hearing of it", async () => {
    const other = await place.open();
    await store.transact("seed", (tx) => put(tx, "shared", 0));
    const increments = (node: Store) =>
      Array.from({ length: 25 }, () =>
        node.transact("increment", async (tx) => {
          await put(tx, "shared", ((await numberOf(tx, "shared")) ?? 0) + 1);
        }),
      );
    await Promise.all([...increments(store), ...increments(other)]);
    expect(await numberOf(store.read, "shared")).toBe(50);
  });

  test("after it was closed, everything is refused with a typed error", async () => {
    await store.close();
    await expect(store.transact("late", (tx) => put(tx, "late", 1))).rejects.toThrow();
  });

  test.each([
    ["reads", () => store.read.get`select count(*) as count from ledger`],
    ["snapshots", () => store.snapshot((reads) => reads.get`select count(*) as count from ledger`)],
  ])("whoever does nothing but %s does not keep writers and timers from running", async (_what, look) => {
    let looking = true;
    const looks = Array.from({ length: 4 }, async () => {
      while (looking) await look();
    });
    await store.transact("write", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [] }));
    await new Promise((resolve) => setTimeout(resolve, 5));
    looking = false;
    await Promise.all(looks);
    expect(await store.ledger.read(0, 10)).toHaveLength(1);
  });
});
