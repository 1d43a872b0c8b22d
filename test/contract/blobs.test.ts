import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

describe.each(PLACES)("blobs on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const put = (owner: string, bytes: Uint8Array) => store.transact("put", (tx) => store.blobs.put(tx, [owner], bytes));
  const release = (owner: string, hash?: string) => store.transact("release", (tx) => store.blobs.release(tx, [owner], hash));
  const stored = async () => (await store.read.all`select hash from blobs`).length;

  test("the same bytes are stored once, under the same name", async () => {
    const bytes = new Uint8Array(300_000).fill(7);
    const first = await put("a", bytes);
    expect(await put("b", bytes)).toBe(first);
    expect(await stored()).toBe(1);
    expect(await store.blobs.get(first)).toEqual(bytes);
    expect(await store.blobs.get("unknown")).toBeUndefined();
  });

  test("an empty blob is a blob", async () => {
    expect(await store.blobs.get(await put("a", new Uint8Array()))).toEqual(new Uint8Array());
  });

  test("bytes go when the last owner has let go, and not before", async () => {
    const hash = await put("a", Uint8Array.of(1));
    await put("b", Uint8Array.of(1));
    await release("a");
    await place.elapse(10_000);
    expect(await store.blobs.sweep(5_000)).toBe(0);
    await release("b", hash);
    expect(await store.blobs.sweep(20_000)).toBe(0);
    expect(await store.blobs.sweep(5_000)).toBe(1);
    expect(await stored()).toBe(0);
  });

  test("bytes that are taken up again at the moment of the sweep stay", async () => {
    for (let round = 0; round < 10; round++) {
      const bytes = Uint8Array.of(round, 9);
      await put("old", bytes);
      await release("old");
      await place.elapse(10_000);
      const [hash] = await Promise.all([put("new", bytes), store.blobs.sweep(5_000)]);
      expect(await store.blobs.get(hash)).toEqual(bytes);
    }
  });

  test("a blob of a transaction that fails leaves nothing", async () => {
    await store
      .transact("fails", async (tx) => {
        await store.blobs.put(tx, ["a"], Uint8Array.of(1, 2, 3));
        throw new Error("no");
      })
      .catch(() => {});
    expect(await stored()).toBe(0);
  });
});
