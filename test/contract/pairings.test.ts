import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { pairSenderIn, unpairSenderIn } from "../../src/acts/pair-sender.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { keepOwnerChat, ownerChats } from "../../src/records/channels/owner-chats.ts";
import { type Knock, knockIn, listPairings, pairedAmong, sweepPairings } from "../../src/records/channels/pairings.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const HOUR_MS = 60 * 60_000;
const TELEGRAM = { platform: "telegram", account: "default" };
const WORK = { platform: "telegram", account: "work" };

describe.each(PLACES)("pairings on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const knock = (peer: string, mayTell = true, account = TELEGRAM, at = store): Promise<Knock> =>
    at.transact("knock", (tx) => knockIn(tx, account, peer, mayTell, systemRandom), "locked");
  const code = async (peer: string, account = TELEGRAM): Promise<string> => (await knock(peer, true, account))?.code as string;
  const pair = (given: string, by = "telegram:7", at = store) => at.transact("pair", (tx) => pairSenderIn(at, tx, given, by), "locked");
  const unpair = (peer: string, account = TELEGRAM) =>
    store.transact("unpair", (tx) => unpairSenderIn(store, tx, { ...account, peer }, "operator"), "locked");
  const isIn = async (peer: string, account = TELEGRAM): Promise<boolean> => (await pairedAmong(store.read, account, [peer])).has(peer);
  const unknown = { code: "pairing.unknown" };

  test("a code lets in the one who was told it, once, on the account where they wrote", async () => {
    const given = await code("9");
    expect(given).toMatch(/^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/);
    expect(await isIn("9")).toBe(false);
    expect(await pair(given)).toEqual({ ...TELEGRAM, peer: "9" });
    expect([await isIn("9"), await isIn("9", WORK), await isIn("8")]).toEqual([true, false, false]);
    await expect(pair(given)).rejects.toMatchObject(unknown);
    const events = await store.ledger.read(0, 100, ["channel", "telegram", "default"]);
    expect(events).toMatchObject([{ type: "sender.paired", actor: "telegram:7", data: { peer: "9" } }]);
    expect(await listPairings(store.read)).toMatchObject([{ peer: "9", state: "paired", pairedBy: "telegram:7", expiresAt: null }]);
  });

  test("a code is read however somebody copies it, and stands nowhere in the books", async () => {
    const [first, second] = [await code("9"), await code("10")];
    const rows = await place.tamper("select * from pairings");
    expect(JSON.stringify(rows)).not.toContain(first);
    expect(JSON.stringify(rows)).not.toContain(first.replace("-", ""));
    expect(JSON.stringify(await listPairings(store.read))).not.toContain(first);
    await pair(` ${first.toLowerCase().replace("-", " ")} `);
    await pair(second.replace("-", ""));
    expect([await isIn("9"), await isIn("10")]).toEqual([true, true]);
  });

  test("nothing that is no code lets anybody in", async () => {
    await code("9");
    for (const wrong of ["", "-", "AAAA-AAAA", "%", "null"]) await expect(pair(wrong)).rejects.toMatchObject(unknown);
    expect(await isIn("9")).toBe(false);
  });

  test("of two who give the same code at once, on two nodes, one lets in and the other is told that there is none", async () => {
    const given = await code("9");
    const other = await place.open();
    const outcomes = await Promise.allSettled([pair(given, "telegram:7"), pair(given, "discord:9", other), pair(given, "operator")]);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await store.ledger.read(0, 100, ["channel", "telegram", "default"])).toHaveLength(1);
  });

  test("a code is good for an hour by the database's clock, and the next one comes after it", async () => {
    const first = await code("9");
    await place.elapse(HOUR_MS - 60_000);
    expect(await knock("9")).toBeNull();
    await place.elapse(60_000);
    await expect(pair(first)).rejects.toMatchObject(unknown);
    const second = await code("9");
    expect(second).toBeTypeOf("string");
    await expect(pair(first)).rejects.toMatchObject(unknown);
    await pair(second);
    expect(await isIn("9")).toBe(true);
    await place.elapse(100 * HOUR_MS);
    expect(await isIn("9")).toBe(true);
  });

  test("whoever writes a thousand times leaves one row and is told one code; in a group, none", async () => {
    await knock("9");
    for (let i = 0; i < 5; i++) expect(await knock("9")).toBeNull();
    expect(await listPairings(store.read)).toMatchObject([{ peer: "9", state: "pending", messages: 6 }]);
    expect(await knock("10", false)).toBeNull();
    expect(await listPairings(store.read)).toHaveLength(1);
  });

  test("at most 20 strangers of an account hold a code, however many come at once; another account has its own", async () => {
    const other = await place.open();
    const knocks = await Promise.all(
      Array.from({ length: 30 }, (_, peer) => knock(String(peer), true, TELEGRAM, peer % 2 ? store : other)),
    );
    expect(knocks.filter((told) => told !== null)).toHaveLength(20);
    expect(await knock("31")).toBeNull();
    expect(await knock("31", true, WORK)).not.toBeNull();
    await place.elapse(HOUR_MS);
    expect(await knock("31")).not.toBeNull();
  });

  test("whoever writes twice at once, to two nodes, is told one code", async () => {
    const other = await place.open();
    const knocks = await Promise.all([knock("9"), knock("9", true, TELEGRAM, other), knock("9"), knock("9", true, TELEGRAM, other)]);
    const told = knocks.filter((one) => one !== null);
    expect(told).toHaveLength(1);
    await pair(told[0]?.code as string);
  });

  test("whoever is removed is a stranger at once; who never was paired is not there to remove", async () => {
    await pair(await code("9"));
    await unpair("9");
    expect(await isIn("9")).toBe(false);
    await expect(unpair("9")).rejects.toMatchObject({ code: "request.not_found", message: "telegram:9 was not paired" });
    await expect(unpair("9", WORK)).rejects.toMatchObject({ message: "telegram/work:9 was not paired" });
    expect((await store.ledger.read(0, 100, ["channel", "telegram", "default"])).map(({ type }) => type)).toEqual([
      "sender.paired",
      "sender.removed",
    ]);
    const withdrawn = await code("9");
    await unpair("9");
    await expect(pair(withdrawn)).rejects.toMatchObject(unknown);
  });

  test("codes that ran out are not listed, and their rows go a day later; those who were let in stay", async () => {
    await pair(await code("9"));
    await code("10");
    await place.elapse(HOUR_MS);
    expect(await listPairings(store.read)).toMatchObject([{ peer: "9" }]);
    expect(await sweepPairings(store)).toBe(0);
    await place.elapse(24 * HOUR_MS + 1_000);
    expect([await sweepPairings(store), await sweepPairings(store)]).toEqual([1, 0]);
    expect(await place.tamper("select peer from pairings")).toEqual([{ peer: "9" }]);
  });

  test("where an owner has written in private is known by account, the newest first", async () => {
    const address = { ...TELEGRAM, guild: null, chat: "7", topic: null, chatType: "dm" as const, peer: "7", roles: [] };
    const keep = (more: object) => store.transact("keep", (tx) => keepOwnerChat(tx, { ...address, ...more }));
    await keep({});
    await place.elapse(1_000);
    await keep({ account: "work" });
    expect((await ownerChats(store.read, address)).map(({ account }) => account)).toEqual(["work", "default"]);
    await place.elapse(1_000);
    await keep({ chat: "moved" });
    expect((await ownerChats(store.read, address)).map(({ chat }) => chat)).toEqual(["moved", "7"]);
    expect(await ownerChats(store.read, { platform: "telegram", peer: "8" })).toEqual([]);
  });
});
