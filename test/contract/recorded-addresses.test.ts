import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { configSchema } from "../../src/contract/config.ts";
import type { Address } from "../../src/deciders/routing/address.ts";
import { routeNamed } from "../../src/deciders/routing/route.ts";
import { Router } from "../../src/deciders/routing/router.ts";
import { routingOfConfig } from "../../src/deciders/routing/routing-of.ts";
import { readRecordedAddresses } from "../../src/records/sessions/recorded-addresses.ts";
import { addRun } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const at: Address = { platform: "x", account: "default", guild: null, chat: "c", topic: null, chatType: "group", peer: "p", roles: ["r"] };
/** An id as only somebody who means harm would choose it. */
const FORGED = '","tier":"named","x":"';
const config = configSchema.parse({ bindings: [{ agent: "main", match: { platform: "x", chat: FORGED } }] });
const router = new Router(routingOfConfig(config));

describe.each(PLACES)("recorded addresses on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  const record = (id: string, address: Address, decision = router.explain(address)) =>
    store.transact("record", (tx) =>
      addRun(tx, { id, agent: decision.agent, sessionKey: "s", address, input: "hello", decision, refusal: null }),
    );
  const read = (limit: number, before: string | null = null) => readRecordedAddresses(store.read, limit, before);

  test("the newest come first, a piece at a time, none twice and none left out", async () => {
    for (let index = 0; index < 7; index++) await record(`run${index}`, { ...at, chat: `c${index}` });
    const seen: string[] = [];
    for (let before: string | null = null; ; ) {
      const { found, next } = await read(3, before);
      seen.push(...found.map(({ address }) => address.chat));
      if (next === null) break;
      before = next;
    }
    expect(seen).toEqual(["c6", "c5", "c4", "c3", "c2", "c1", "c0"]);
    expect(await read(1)).toEqual({ found: [{ run: "run6", at: expect.any(Number), address: { ...at, chat: "c6" } }], next: "run6" });
  });

  test("messages whose sender named the agent are none of the rules'; no id passes for one", async () => {
    await record("run1", at, routeNamed(config.agents, "main"));
    await record("run2", { ...at, chat: FORGED });
    expect(router.route({ ...at, chat: FORGED }).tier).toBe("chat");
    expect((await read(10)).found.map(({ run }) => run)).toEqual(["run2"]);
    expect(await read(1, "run2")).toEqual({ found: [], next: "run1" });
  });
});
