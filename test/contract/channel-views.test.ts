import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { viewChannels } from "../../src/acts/view-channels.ts";
import { accountLease, tellState } from "../../src/records/channels/channel-accounts.ts";
import { addReply } from "../../src/records/sessions/outbox.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const DEFAULT = { platform: "telegram", account: "default" };
const WORK = { platform: "telegram", account: "work" };

describe.each(PLACES)("how channels are doing, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const tell = (state: "connected" | "refused", problem: string | null) =>
    store.transact("tell", (tx) => tellState(tx, DEFAULT, { state, problem, name: "bot", node: "n1" }));

  test("what a node has said counts while it holds the account, and nothing is said of those that are not asked for", async () => {
    await tell("connected", null);
    expect(await viewChannels(store.read, [DEFAULT])).toMatchObject([{ state: "connecting", node: null }]);
    expect(await viewChannels(store.read, [DEFAULT], "off")).toMatchObject([{ state: "off", name: "bot" }]);
    await store.leases.acquire(accountLease(DEFAULT), "n1", 15_000);
    expect(await viewChannels(store.read, [DEFAULT], "off")).toMatchObject([
      { state: "connected", name: "bot", node: "n1", problem: null },
    ]);
    await tell("refused", "the token is not valid");
    expect(await viewChannels(store.read, [DEFAULT])).toMatchObject([{ state: "refused", problem: "the token is not valid" }]);
    await place.elapse(15_000);
    expect(await viewChannels(store.read, [DEFAULT], "off")).toMatchObject([{ state: "off", problem: "the token is not valid" }]);
    expect(await viewChannels(store.read, [WORK])).toMatchObject([{ account: "work", state: "connecting", since: null, name: null }]);
    expect(await viewChannels(store.read, [])).toEqual([]);
  });

  test("replies that have not arrived are counted by account, with the age of the oldest", async () => {
    const address = { ...DEFAULT, guild: null, chat: "7", topic: null, chatType: "dm" as const, peer: "7", roles: [] };
    const reply = (id: string) => ({ id, runId: "r", address, text: "x", answers: null });
    await store.transact("add", (tx) => addReply(tx, reply("a")));
    await place.elapse(60_000);
    await store.transact("add", async (tx) => {
      await addReply(tx, reply("b"));
      await addReply(tx, { ...reply("c"), runId: "q" }, "draft");
    });
    const [first, second] = await viewChannels(store.read, [DEFAULT, WORK]);
    expect(first?.waiting).toBe(2);
    expect(first?.oldestMs).toBeGreaterThanOrEqual(60_000);
    expect(second).toMatchObject({ waiting: 0, oldestMs: null });
  });
});
