import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Access } from "../../src/records/access/access.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const AGENTS = [
  { id: "coder", roles: ["engineer"] },
  { id: "Writer", roles: [] },
];

describe.each(PLACES)("tokens on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => {
    vi.useRealTimers();
    return place.remove();
  });

  const accessOn = (node: Store, agents = AGENTS): Access =>
    new Access(node, { list: () => agents }, idSource(systemClock, systemRandom), systemRandom);

  test.each([
    ["operator", { kind: "operator", name: "operator", roles: [] }],
    ["read", { kind: "reader", name: "reader", roles: [] }],
    ["agent:coder", { kind: "agent", name: "coder", roles: ["engineer"] }],
    ["guest:claude-code-1", { kind: "guest", name: "claude-code-1", roles: [] }],
    ["channel:telegram/work", { kind: "channel", name: "telegram/work", roles: [] }],
  ])("%s stands for its caller, on every node", async (scope, caller) => {
    const made = await accessOn(store).create(OPERATOR, { scope, name: "laptop" });
    expect(made.token).toMatch(/^gh_[\w-]{43}$/);
    const elsewhere = accessOn(await place.open());
    expect(await elsewhere.authenticate(made.token)).toEqual({
      caller: { ...caller, run: null, step: null, call: null },
      tokenId: made.id,
    });
  });

  test("the database holds no secret", async () => {
    const made = await accessOn(store).create(OPERATOR, { scope: "operator" });
    const rows = JSON.stringify([await place.tamper("select * from tokens"), await place.tamper("select * from ledger")]);
    expect(rows).toContain(made.id);
    expect(rows).not.toContain(made.token.slice(3));
  });

  test("a token that was never made, is cut short or is something else entirely is nobody", async () => {
    const access = accessOn(store);
    const { token } = await access.create(OPERATOR, { scope: "operator" });
    for (const wrong of [token.slice(0, -1), `${token}x`, token.toUpperCase(), "", "gh_", "' or 1=1 --", "x".repeat(100_000)])
      expect(await access.authenticate(wrong)).toBeUndefined();
  });

  test.each([
    ["agent:nobody", "agent.unknown"],
    ["agent:Coder", "agent.unknown"],
    ["guest:coder", "request.malformed"],
    ["guest:writer", "request.malformed"],
    ["guest:operator", "request.malformed"],
    ["guest:reader", "request.malformed"],
    ["guest:guildhall", "request.malformed"],
  ])("%s cannot be made: %s", async (scope, code) => {
    const access = accessOn(store);
    await expect(access.create(OPERATOR, { scope })).rejects.toMatchObject({ code });
    expect(await access.list()).toEqual([]);
  });

  test("a guest is nobody from the moment an agent has its name, and an agent's token when the agent is gone", async () => {
    const guest = await accessOn(store).create(OPERATOR, { scope: "guest:tester" });
    const agent = await accessOn(store).create(OPERATOR, { scope: "agent:coder" });
    const later = accessOn(store, [{ id: "tester", roles: [] }]);
    expect(await later.authenticate(guest.token)).toBeUndefined();
    expect(await later.authenticate(agent.token)).toBeUndefined();
    expect(await later.stillValid([guest.id, agent.id])).toEqual(new Set());
    expect(await accessOn(store).stillValid([guest.id, agent.id])).toEqual(new Set([guest.id, agent.id]));
  });

  test("revoked on one node, it is refused on every node within a second, and stays so", async () => {
    const [here, there] = [accessOn(store), accessOn(await place.open())];
    const { id, token } = await here.create(OPERATOR, { scope: "operator" });
    vi.useFakeTimers({ toFake: ["performance"] });
    expect(await there.authenticate(token)).toBeDefined();
    const first = await here.revoke(OPERATOR, id.slice(0, 15));
    expect(await here.authenticate(token)).toBeUndefined();
    vi.advanceTimersByTime(1_000);
    expect(await there.authenticate(token)).toBeUndefined();
    expect(await there.stillValid([id])).toEqual(new Set());
    expect((await there.revoke(OPERATOR, id)).revokedAt).toBe(first.revokedAt);
    const events = await store.ledger.read(0, 10);
    expect(events.map(({ type, actor, subject }) => [type, actor, subject])).toEqual([
      ["token.created", "operator", ["token", id]],
      ["token.revoked", "operator", ["token", id]],
    ]);
  });

  test("the beginning of an id will do where only one begins so", async () => {
    const access = accessOn(store);
    const made = [await access.create(OPERATOR, { scope: "read" }), await access.create(OPERATOR, { scope: "read" })];
    await expect(access.revoke(OPERATOR, made[0]?.id.slice(0, 3) as string)).rejects.toMatchObject({ code: "request.malformed" });
    for (const none of ["zzzz", "", "%", `${made[0]?.id}0`])
      await expect(access.revoke(OPERATOR, none)).rejects.toMatchObject({ code: "request.not_found" });
    expect((await access.list()).map(({ revokedAt }) => revokedAt)).toEqual([null, null]);
  });

  test("its last use is known to the minute", async () => {
    const access = accessOn(store);
    const { token } = await access.create(OPERATOR, { scope: "read" });
    expect((await access.list())[0]?.lastUsedAt).toBeNull();
    await access.authenticate(token);
    await expect.poll(async () => (await access.list())[0]?.lastUsedAt).toBeGreaterThan(0);
  });
});
