import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readCursor, readStates } from "../../src/records/channels/channel-accounts.ts";
import { pairIn } from "../../src/records/channels/pairings.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { ChattingHouse, chatMessage } from "./chatting-house.ts";

const ACCOUNT = { platform: "test", account: "default" };
const SOON = { timeout: 10_000, interval: 10 };
const group = (isForUs: boolean, chat = "g") => ({ isForUs, place: { chat, chatType: "group" as const } });

describe.each(PLACES)("receiving on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: ChattingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new ChattingHouse(store);
    await house.adopt();
  });
  afterEach(async () => {
    await house.leave();
    await place.remove();
  });
  const inputs = async (): Promise<string[]> => (await house.runs()).map(({ input }) => input);
  const cursor = (): Promise<unknown> => readCursor(store.read, ACCOUNT);

  test("a batch and its cursor are there together", async () => {
    expect((await house.inbound()).cursor).toBeNull();
    await house.hear([chatMessage("a"), chatMessage("b")], { offset: 2 });
    expect(await inputs()).toEqual(["a", "b"]);
    expect(await cursor()).toEqual({ offset: 2 });
    await house.hear([], { offset: 3 });
    expect(await cursor()).toEqual({ offset: 3 });
    await house.hear([chatMessage("c")]);
    expect(await cursor()).toEqual({ offset: 3 });
  });

  test("what a batch brings is begun at once as far as there are places; of one chat only the first, and every other place is free again", async () => {
    const begun: string[] = [];
    let kept = 0;
    let left = 2;
    house.keepPlace = (agent) => {
      if (left === 0) return null;
      left--;
      kept++;
      let isOpen = true;
      const close = (): void => {
        if (isOpen) kept--;
        isOpen = false;
      };
      return {
        ...{ owner: "here", ttlMs: 60_000, giveUp: close },
        begin: ({ fence }) => {
          begun.push(`${agent} ${fence}`);
          close();
        },
      };
    };
    const states = (): Promise<{ state: string; owner: string | null }[]> => store.read.all`select state, owner from work order by id`;
    await house.hear([chatMessage("a"), chatMessage("b"), chatMessage("c", group(true))], 1);
    expect(await states()).toEqual([
      { state: "running", owner: "here" },
      { state: "queued", owner: null },
      { state: "ready", owner: null },
    ]);
    expect(begun).toEqual(["main 1"]);
    expect(kept).toBe(0);
    // What cannot be stored begins nothing; what is stored without it does.
    left = 9;
    await house.hear([chatMessage("unstorable", group(true, "x")), chatMessage("d", group(true, "y"))], 2);
    expect(begun).toHaveLength(2);
    expect(kept).toBe(0);
  });

  test("what fails at its end leaves neither", async () => {
    await place.tamper(
      place.kind === "sqlite"
        ? "create trigger refuse before insert on channel_accounts begin select raise(abort, 'no'); end"
        : "alter table channel_accounts add constraint refuse check (cursor is null) not valid",
    );
    // Kept from moving, the cursor stays behind what was stored, and never before it.
    await expect(house.hear([chatMessage("a"), chatMessage("b")], 2)).rejects.toThrow();
    await place.tamper(place.kind === "sqlite" ? "drop trigger refuse" : "alter table channel_accounts drop constraint refuse");
    expect(await cursor()).toBeNull();
    await house.hear([chatMessage("a"), chatMessage("b")], 2);
    expect(await inputs()).toEqual(["a", "b"]);
    expect(await cursor()).toBe(2);
  });

  test("E2: an event runs once, in one batch, in two, and on two nodes at once", async () => {
    const twin = chatMessage("twin");
    await house.hear([twin, twin, chatMessage("other")]);
    await house.hear([twin, chatMessage("third")]);
    const posted = house.inbound();
    await Promise.all(Array.from({ length: 5 }, async () => (await posted).take([chatMessage("at once"), twin])));
    expect((await inputs()).toSorted()).toEqual(["at once", "other", "third", "twin"]);
    expect(await house.told("message.admitted")).toHaveLength(4);
  });

  test("a message that cannot be stored is recorded as refused, and those around it come in", async () => {
    await house.hear([chatMessage("before"), chatMessage("unstorable", { id: "bad" }), chatMessage("after")], 3);
    expect(await inputs()).toEqual(["before", "after"]);
    expect(await cursor()).toBe(3);
    expect(await house.told("message.refused")).toMatchObject([
      { actor: "test:7", subject: ["channel", "test", "default"], data: { id: "bad", code: "internal.bug" } },
    ]);
    await house.hear([chatMessage("unstorable", { id: "alone" })], 4);
    expect(await cursor()).toBe(4);
    expect(await house.told("message.refused")).toHaveLength(2);
  });

  test("one without words is recorded as refused; that of a stranger is not", async () => {
    await house.hear([chatMessage("", { id: "empty" }), chatMessage("", { id: "stranger's", peer: "666" }), chatMessage("next")], 1);
    expect(await inputs()).toEqual(["next"]);
    expect((await house.told("message.refused")).map(({ data }) => data)).toMatchObject([
      { id: "empty", code: "request.malformed", message: expect.stringContaining("text") },
    ]);
  });

  test("L7: whoever has lost the account stores nothing, moves no cursor, and says nothing about it", async () => {
    const old = new ChattingHouse(store, { channels: { other: {}, test: { allow: ["7"], token: "x" } } }, "old", 60_000);
    await house.leave();
    await old.adopt({ test: { allow: ["7"] } });
    const stale = await old.inbound();
    await stale.take([chatMessage("first")], 1);
    await place.elapse(61_000);
    const young = new ChattingHouse(await place.open(), {}, "young", 60_000);
    await young.adopt();
    await (await young.inbound()).take([chatMessage("second")], 2);
    await expect.poll(() => readStates(store.read), SOON).toMatchObject([{ state: "connected", node: "young" }]);
    await expect(stale.take([chatMessage("late")], 7)).rejects.toMatchObject({ code: "fence.stale" });
    await expect(stale.take([chatMessage("unstorable"), chatMessage("late too")], 7)).rejects.toMatchObject({ code: "fence.stale" });
    await expect(stale.take([], 8)).rejects.toMatchObject({ code: "fence.stale" });
    stale.disconnected("nobody asked");
    await old.leave();
    expect(await cursor()).toBe(2);
    expect(await inputs()).toEqual(["first", "second"]);
    expect(await readStates(store.read)).toMatchObject([{ state: "connected", node: "young" }]);
    await young.leave();
    expect(await readStates(store.read)).toMatchObject([{ state: "off", node: null }]);
  });

  test("L7: whoever loses the account when half of a batch is stored stores nothing more of it, and moves no cursor", async () => {
    const inbound = await house.inbound();
    await expect.poll(() => readStates(store.read), SOON).toMatchObject([{ state: "connected" }]);
    const { guard } = store.leases;
    let isLost = false;
    house.reached = (point) => {
      isLost ||= point === "message.admitted";
    };
    store.leases.guard = async (tx, name, fence) => guard.call(store.leases, tx, name, isLost ? fence - 1 : fence);
    const taking = inbound.take([chatMessage("first"), chatMessage("second"), chatMessage("unstorable")], 7);
    await expect(taking).rejects.toMatchObject({ code: "fence.stale" });
    expect(await inputs()).toEqual(["first"]);
    expect(await cursor()).toBeNull();
  });

  // One that is itself stopped for the time of its lease cannot: it is seen when it goes on.
  test.runIf(_name === "SQLite")(
    "L7: a node that cannot reach its database lets go before somebody else may begin",
    { retry: 2 },
    async () => {
      const cut = await place.open();
      const alone = new ChattingHouse(cut, {}, "alone", 3_000);
      const ended = new Promise<number>((resolve) => {
        alone.platform("far").onEnd = () => resolve(Date.now());
      });
      await alone.adopt({ test: { accounts: { far: { allow: ["7"], token: "x" } } } });
      await alone.inbound("far");
      cut.leases.renewAll = () => new Promise(() => {});
      const lease = await store.read.get<{ expires: number }>`select expires_at as expires from leases where holder = 'alone'`;
      expect(await ended).toBeLessThan(lease?.expires ?? 0);
      await alone.leave();
    },
  );

  test("in a group only what is said to us comes in, unless the operator wants all of it", async () => {
    await house.hear([chatMessage("to others", group(false)), chatMessage("to us", group(true))]);
    expect(await inputs()).toEqual(["[test:7] to us"]);
    await house.adopt({ test: { allow: ["7"], require_mention: false } });
    await house.hear([chatMessage("anything", group(false))]);
    expect(await inputs()).toEqual(["[test:7] to us", "[test:7] anything"]);
  });

  test("a stranger is told one code, in private, whatever else they say; once paired, they come in", async () => {
    const from = (text: string, how = {}) => chatMessage(text, { peer: "666", ...how });
    await house.hear([from("in public", group(true)), from("hello"), from("hello?")]);
    for (let index = 0; index < 30; index++) await house.hear([from(`again ${index}`)]);
    await expect(house.take()).rejects.toThrow("there is no turn");
    expect(await house.runs()).toMatchObject([{ input: "hello", code: "sender.unknown" }]);
    expect(await house.told("sender.refused")).toHaveLength(1);
    await house.deliverNext();
    const [shown] = house.platform().texts("666");
    expect(await house.replies()).toHaveLength(1);
    const code = /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec(shown as string)?.[0] as string;
    expect(await store.transact("pair", (tx) => pairIn(tx, code, "owner"))).toMatchObject({ peer: "666" });
    await house.hear([from("me again")]);
    await house.take();
    expect((await house.runs()).at(-1)).toMatchObject({ input: "me again", status: "completed" });
  });

  test("a chat in which too much waits is refused more, with the reason in the books; other chats are not", async () => {
    house.reconfigure({ agents: { main: { model: "test/model" } }, limits: { waiting_per_chat: 2 } });
    const chat = (text: string, name: string) => chatMessage(text, group(true, name));
    await house.hear([chat("1", "a"), chat("2", "a"), chat("3", "a"), chat("4", "b")]);
    await house.hear([chat("5", "a"), chat("6", "b"), chat("3", "a")], 5);
    expect((await house.runs()).map(({ input, code }) => `${input.at(-1)} ${code}`)).toEqual([
      "1 null",
      "2 null",
      "3 request.busy",
      "4 null",
      "5 request.busy",
      "6 null",
    ]);
    expect(await house.told("message.refused")).toMatchObject([
      { data: { code: "request.busy", message: expect.stringContaining("limits.waiting_per_chat") } },
      {},
    ]);
    expect(await cursor()).toBe(5);
    await house.take();
    await house.hear([chat("7", "a")]);
    expect((await house.runs()).at(-1)).toMatchObject({ code: null });
  });

  test.runIf(_name === "SQLite")("a channel that does not end when it is told to keeps no other waiting for long", async () => {
    house.platform("deaf").isDeaf = true;
    const account = { allow: ["7"], token: "x" };
    await house.adopt({ test: { accounts: { deaf: account } } });
    const deaf = await house.inbound("deaf");
    await house.adopt({ test: { accounts: { another: account } } });
    await house.hear([chatMessage("hello")], 1, "another");
    await expect(deaf.take([chatMessage("still here")])).rejects.toMatchObject({ code: "fence.stale" });
    expect(await inputs()).toEqual(["hello"]);
  });
});
