import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SearchRequest } from "../../src/store/search.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const DOCUMENTS: readonly (readonly [id: string, scope: readonly string[], text: string])[] = [
  ["stripe", ["coder", "tasks"], "Build a payment client for the Stripe API and test its webhooks"],
  ["paypal", ["coder", "tasks"], "Payments with PayPal: compare fees"],
  ["garden", ["house"], "Water the garden; the tomatoes need care"],
  ["secret", ["coder2", "tasks"], "Stripe keys of another tenant"],
  ["sub", ["coder", "tasks", "child"], "Stripe research notes"],
  ["accents", ["house"], "Das Müllerhaus in Zürich, naïve façade"],
  ["chinese", ["house"], "共享内存让代理可以合作"],
];

describe.each(PLACES)("search on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    await store.transact("index", async (tx) => {
      for (const [id, scope, text] of DOCUMENTS) await store.search.put(tx, { collection: "things", id, scope, text });
    });
  });
  afterEach(() => place.remove());

  const find = async (text: string, more: Partial<SearchRequest> = {}): Promise<string[]> => {
    const hits = await store.search.find({ collection: "things", scopes: [[]], text, limit: 10, ...more });
    return hits.map((hit) => hit.id).sort();
  };

  test("finds documents that have all the words, whatever their ending, case or accents", async () => {
    expect(await find("STRIPE")).toEqual(["secret", "stripe", "sub"]);
    expect(await find("payments")).toEqual(["paypal", "stripe"]);
    expect(await find("tested clients")).toEqual(["stripe"]);
    expect(await find("zurich naive")).toEqual(["accents"]);
    expect(await find("stripe garden")).toEqual([]);
    expect(await find("stripe garden", { match: "any" })).toEqual(["garden", "secret", "stripe", "sub"]);
  });

  test("finds words in scripts without spaces", async () => {
    expect(await find("内存")).toEqual(["chinese"]);
    expect(await find("代理合作", { match: "any" })).toEqual(["chinese"]);
  });

  test("sees the scopes it names and what is below them, and no namesake", async () => {
    expect(await find("stripe", { scopes: [["coder"]] })).toEqual(["stripe", "sub"]);
    expect(await find("stripe", { scopes: [["coder", "tasks", "child"]] })).toEqual(["sub"]);
    expect(await find("stripe", { scopes: [["coder2"], ["house"]] })).toEqual(["secret"]);
    expect(await find("stripe", { scopes: [] })).toEqual([]);
    expect(await find("stripe", { scopes: [["coder/tasks"]] })).toEqual([]);
  });

  test("what people type is words, never syntax", async () => {
    for (const text of [
      'stripe" OR "garden',
      "stripe OR garden",
      "stripe*",
      "NEAR(stripe garden)",
      "terms:stripe",
      "stripe) OR (garden",
      "' or 1=1 --",
      '"""',
      "-stripe",
      "a & | ! <-> :*",
      "\u0000 stripe \\",
    ]) {
      for (const id of await find(text)) expect(["stripe", "sub", "secret"]).toContain(id);
    }
    expect(await find("stripe OR garden")).toEqual([]);
    expect(await find("")).toEqual([]);
    expect(await find("!!!")).toEqual([]);
  });

  test("the query syntax is there for those who ask for it", async () => {
    const ask = (text: string) => find(text, { match: "operators" });
    expect(await ask("stripe OR garden")).toEqual(["garden", "secret", "stripe", "sub"]);
    expect(await ask('"payment client"')).toEqual(["stripe"]);
    expect(await ask('"client payment"')).toEqual([]);
    expect(await ask("pay*")).toEqual(["paypal", "stripe"]);
    expect(await ask("stripe -research")).toEqual(["secret", "stripe"]);
    expect(await ask('"unclosed phrase')).toEqual([]);
    expect(await ask("-garden")).toEqual([]);
  });

  test("a hit shows where the words are, and the better match comes first", async () => {
    const long = `${"filler words without meaning ".repeat(60)} the needle is here ${"and more filler ".repeat(60)}`;
    await store.transact("index", (tx) => store.search.put(tx, { collection: "things", id: "long", scope: ["house"], text: long }));
    await store.transact("index", (tx) =>
      store.search.put(tx, { collection: "things", id: "short", scope: ["house"], text: "needle needle" }),
    );
    const hits = await store.search.find({ collection: "things", scopes: [["house"]], text: "needles", limit: 10 });
    expect(hits.map((hit) => hit.id)).toEqual(["short", "long"]);
    expect(hits[1]?.snippet).toContain("«needle» is here");
    expect(hits[1]?.snippet.length).toBeLessThan(220);
  });

  test("a replaced document is found by its new words only, a removed one by none", async () => {
    await store.transact("replace", (tx) =>
      store.search.put(tx, { collection: "things", id: "garden", scope: ["house"], text: "Prune the roses" }),
    );
    expect(await find("tomatoes")).toEqual([]);
    expect(await find("roses")).toEqual(["garden"]);
    expect(await store.transact("remove", (tx) => store.search.remove(tx, "things", "garden"))).toBe(true);
    expect(await find("roses")).toEqual([]);
    expect(await store.transact("remove", (tx) => store.search.remove(tx, "things", "garden"))).toBe(false);
  });

  test("an index entry is there only when its transaction commits", async () => {
    await store
      .transact("rolled back", async (tx) => {
        await store.search.put(tx, { collection: "things", id: "ghost", scope: [], text: "ghostly words" });
        throw new Error("no");
      })
      .catch(() => {});
    expect(await find("ghostly")).toEqual([]);
  });

  test("collections do not see each other", async () => {
    expect(await find("stripe", { collection: "others" })).toEqual([]);
  });

  test("a very long text is indexed whole", async () => {
    const words = Array.from({ length: 20_000 }, (_, index) => `w${index}`).join(" ");
    await store.transact("index", (tx) => store.search.put(tx, { collection: "things", id: "huge", scope: ["house"], text: words }));
    expect(await find("w19999")).toEqual(["huge"]);
  });
});
