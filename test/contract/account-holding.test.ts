import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { accountLease, readStates } from "../../src/records/channels/channel-accounts.ts";
import type { Store } from "../../src/store/store.ts";
import { Wake } from "../../src/store/wake.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { ChattingHouse } from "./chatting-house.ts";

const LEASE_MS = 3_000;
/** Longer than the part of a lease in which its holder is silent: a second and a half is left of it, with a margin. */
const LINGERS_MS = 1_500;
const WAITS_MS = 1_500;
const ACCOUNT = accountLease({ platform: "test", account: "default" });
const SOON = { timeout: 10_000, interval: 10 };

describe.each(PLACES)("accounts on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  const houses: ChattingHouse[] = [];

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(async () => {
    for (const house of houses.splice(0)) await house.leave();
    await place.remove();
  });

  function house(node: string, on: Store, leaseMs = LEASE_MS): ChattingHouse {
    const made = new ChattingHouse(on, {}, node, leaseMs);
    made.platform().abilities = { dedupes: false, reacts: false, sendsFiles: true, lingersMs: LINGERS_MS };
    houses.push(made);
    return made;
  }
  const accounts = (names: readonly string[]): object => ({
    test: { accounts: Object.fromEntries(names.map((name) => [name, { allow: ["7"], token: name }])) },
  });

  test("L7: who takes over from one that has not given back waits for what it has left at the platform; else nobody waits", async () => {
    const dead = await store.leases.acquire(ACCOUNT, "dead", LEASE_MS);
    await place.elapse(LEASE_MS + 1);
    const second = house("second", store);
    const began = performance.now();
    await second.adopt();
    await second.inbound();
    expect(performance.now() - began).toBeGreaterThanOrEqual(WAITS_MS);
    expect(dead).toMatchObject({ held: true });
    await second.leave();
    const third = house("third", await place.open());
    // If it waited, it would be for longer than the test does.
    third.platform().abilities = { ...third.platform().abilities, lingersMs: 600_000 };
    await third.adopt();
    await third.inbound();
  });

  test.runIf(_name === "SQLite")("L7: a channel that does not end when it is told to gives nothing back: the next one waits", async () => {
    const first = house("first", store);
    first.platform().isDeaf = true;
    await first.adopt();
    await first.inbound();
    await first.adopt({});
    expect(await store.leases.acquire(ACCOUNT, "next", LEASE_MS)).toMatchObject({ held: true, isClean: false });
  });

  // On SQLite there is one daemon.
  test.runIf(_name === "PostgreSQL")(
    "who gives an account back wakes those that wait for it: they do not wait until they would ask again",
    async () => {
      const first = house("first", store, 60_000);
      await first.adopt();
      await first.inbound();
      const second = house("second", await place.open(), 60_000);
      const { wake } = second.store;
      // Whoever is not woken would ask again in an hour.
      vi.spyOn(wake, "wait").mockImplementation((topic, seen, _ms, signal) =>
        Wake.prototype.wait.call(wake, topic, seen, 3_600_000, signal),
      );
      const asked = expectAsked(second.store);
      await second.adopt();
      await asked;
      await first.leave();
      await second.inbound();
    },
  );

  test.runIf(_name === "PostgreSQL")(
    "however many accounts there are, they are asked about in one read and renewed in one statement",
    async () => {
      const names = ["a", "b", "c", "d", "e"];
      const calls = { renewed: 0, alone: 0, asked: 0, acquired: 0 };
      const { renewAll, renew } = store.leases;
      store.leases.renewAll = (held, ttlMs) => {
        if (held.length === names.length) calls.renewed++;
        return renewAll.call(store.leases, held, ttlMs);
      };
      store.leases.renew = (...given) => {
        calls.alone++;
        return renew.apply(store.leases, given);
      };
      const first = house("first", store);
      await first.adopt(accounts(names));
      await Promise.all(names.map((name) => first.inbound(name)));
      // How they are doing is being written down: that may keep one from being renewed with the others.
      await expect.poll(() => calls.renewed, SOON).toBe(1);
      await expect
        .poll(async () => (await readStates(store.read)).filter(({ state }) => state === "connected").length, SOON)
        .toBe(names.length);

      const waiting = await place.open();
      const { acquire } = waiting.leases;
      waiting.leases.acquire = (...given) => {
        calls.acquired++;
        return acquire.apply(waiting.leases, given);
      };
      countReads(waiting, () => calls.asked++);
      const alone = calls.alone;
      const second = house("second", waiting);
      await second.adopt(accounts(names));
      const renewed = calls.renewed;
      await expect.poll(() => calls.renewed - renewed, SOON).toBe(4);
      // When it was told of them, and about as often as one lease would run out.
      expect(calls.asked).toBeLessThan(names.length);
      expect(calls).toMatchObject({ alone, acquired: 0 });
    },
  );
});

/** Each look at who holds what, once it is answered. */
function countReads(store: Store, seen: () => void): void {
  const { all } = store.read;
  store.read.all = ((...given: Parameters<typeof all>) => {
    const answer = all.apply(store.read, given);
    if (given[0].join("").includes("from leases")) void answer.then(seen);
    return answer;
  }) as typeof all;
}

function expectAsked(store: Store): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  countReads(store, resolve);
  return promise;
}
