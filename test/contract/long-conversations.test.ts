import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readTranscript } from "../../src/records/sessions/transcript.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { OPERATOR, TalkingHouse } from "./sessions-place.ts";

const KEY = "agent:main:telegram:dm:7";
const LONG = 900_000;

describe.each(PLACES)("a long conversation on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TalkingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TalkingHouse(store, { owners: ["telegram:7"] });
  });
  afterEach(() => place.remove());

  const shown = async (epoch: number, limit: number) =>
    (await readTranscript(store.read, KEY, epoch, limit)).map(({ text }) => text.slice(0, 10));

  test("is shown to a turn as far as it fits: the newest, whole, and at least one", async () => {
    await house.exchange("one", `first ${"x".repeat(LONG)}`);
    await house.exchange("two", `second ${"界".repeat(LONG)}`);
    expect(await shown(1, 10)).toEqual(["second 界界界"]);
    await house.exchange("three", "third");
    expect(await shown(1, 10)).toEqual(["three", "third"]);
    await house.exchange("four", `fourth ${"x".repeat(LONG)}`);
    await house.exchange("five", `fifth ${"x".repeat(LONG)}`);
    expect(await shown(1, 10)).toEqual(["three", "third", "four", "fourth xxx", "five", "fifth xxxx"]);
    expect(await shown(1, 3)).toEqual(["fourth xxx", "five", "fifth xxxx"]);
  });

  test("is told whole and in its order, be it long for one long message or for many short ones", async () => {
    await house.exchange("one", "y".repeat(40_000));
    expect((await readTranscript(store.read, KEY, 1, 1_000)).map(({ text }) => text.length)).toEqual([3, 40_000]);
    for (let turn = 1; turn <= 32; turn++) await house.exchange(`q${turn}`, `a${turn}`);
    const told = await shown(1, 1_000);
    expect(told).toHaveLength(66);
    expect(told.slice(-4)).toEqual(["q31", "a31", "q32", "a32"]);
  });

  test("is read in parts that fit, and nothing is left out between them", async () => {
    const said: string[] = [];
    for (let turn = 1; turn <= 4; turn++) {
      await house.exchange(`q${turn}`, `a${turn} ${"x".repeat(LONG)}`);
      said.push(`q${turn}`, `a${turn}`);
    }
    const found: string[] = [];
    const parts: number[] = [];
    for (let before: number | undefined; ; ) {
      const { entries, next } = await house.sessions.read(OPERATOR, KEY, { limit: 200, before });
      found.unshift(...entries.map(({ text }) => text.slice(0, 2)));
      parts.push(entries.length);
      if (next === null) break;
      before = next;
    }
    expect(found).toEqual(said);
    expect(parts.length).toBeGreaterThan(1);
  });

  test("that was begun anew shows a turn all of its epoch, whatever was said before", async () => {
    for (let turn = 1; turn <= 5; turn++) await house.exchange(`old${turn}`, "old");
    const late = await house.send("late");
    await house.send("/new");
    const turn = await house.begin();
    expect(turn.run.id).toBe(late.runId);
    expect(await shown(1, 2)).toEqual(["old5", "old"]);
    await house.commit(turn, "old");
    expect(await shown(2, 2)).toEqual([]);
    await house.exchange("new1", "new");
    expect(await shown(2, 4)).toEqual(["new1", "new"]);
    await house.exchange("new2", "new");
    expect(await shown(2, 2)).toEqual(["new2", "new"]);
  });

  test("is found by the beginning of its key among many newer ones", async () => {
    const peers = ["7", "77", "7%", "7_", "8"];
    for (const peer of peers) await house.send("hello", { peer, chat: peer });
    const keys = async (prefix: string) =>
      (await house.sessions.list(OPERATOR, { prefix, limit: 10 })).sessions
        .map(({ key }) => key.slice("agent:main:telegram:dm:".length))
        .sort();
    expect(await keys("agent:main:telegram:dm:7")).toEqual(["7", "7%25", "77", "7_"]);
    expect(await keys("agent:main:telegram:dm:7%25")).toEqual(["7%25"]);
    expect(await keys("agent:main:telegram:dm:7_")).toEqual(["7_"]);
    expect(await keys("Agent")).toEqual([]);
    const stranger = { ...OPERATOR, kind: "agent", name: "coder" } as const;
    expect((await house.sessions.list(stranger, { prefix: "agent:main", limit: 10 })).sessions).toEqual([]);
  });
});
