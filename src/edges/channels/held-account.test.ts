import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Store } from "../../store/store.ts";
import { HeldAccount, longestWaitMs, momentOf } from "./held-account.ts";

const NAME = { platform: "test", account: "default" };
const LEASE_MS = 450;
const SILENT_MS = 300;

let running = 0;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  vi.spyOn(performance, "now").mockImplementation(() => running);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function held(leaseMs: number, isClean = false, clock = { now: () => 0 }) {
  const over: string[] = [];
  const account = new HeldAccount({ store: {} as Store, clock, leaseMs }, NAME, { fence: 1, isClean }, momentOf(clock), () => {
    over.push("over");
  });
  return { account, over };
}

/** Nothing else happens in this process meanwhile, as when it is stopped. */
function standStill(ms: number): void {
  running += ms;
}

test("who was stopped for too long knows before any timer can tell him, and never again takes the account for his", () => {
  const { account, over } = held(LEASE_MS);
  expect(account.stillOurs()).toBe(true);
  standStill(SILENT_MS);
  expect(account.lost.aborted).toBe(false);
  expect(account.stillOurs()).toBe(false);
  expect(account.lost.aborted).toBe(true);
  account.confirm(momentOf({ now: () => 0 }));
  expect(account.stillOurs()).toBe(false);
  expect(over).toEqual(["over"]);
});

test("a machine that slept, whose own clock of running time stood still, is told by the time of day", () => {
  let now = 1_000_000;
  const { account } = held(60_000, false, { now: () => now });
  now += 39_000;
  expect(account.stillOurs()).toBe(true);
  now += 1_000;
  expect(account.stillOurs()).toBe(false);
});

test("what counts is when the database was asked, not when it answered; an answer to an older question changes nothing", () => {
  const clock = { now: () => 0 };
  const { account } = held(LEASE_MS, false, clock);
  const older = momentOf(clock);
  standStill(SILENT_MS * 0.5);
  const asked = momentOf(clock);
  standStill(SILENT_MS * 0.3);
  account.confirm(asked);
  account.confirm(older);
  standStill(SILENT_MS * 0.3);
  expect(account.stillOurs()).toBe(true);
  standStill(SILENT_MS * 0.5);
  expect(account.stillOurs()).toBe(false);
});

test("another node listens within twenty seconds of the last sign of life of one that is gone, and not before its last request is over", () => {
  for (const leaseMs of [1_000, 2_000, 3_000, 6_000, 15_000, 60_000]) {
    const lingersMs = longestWaitMs(leaseMs);
    const wait = held(leaseMs).account.waitMs(lingersMs);
    expect(lingersMs % 1_000).toBe(0);
    // Begun when it was silent for as long as it may be.
    expect(leaseMs + wait).toBeGreaterThan((leaseMs * 2) / 3 + lingersMs + 900);
    expect(wait).toBeGreaterThan(900);
  }
  expect([2_000, 15_000].map(longestWaitMs)).toEqual([1_000, 4_000]);
  expect(15_000 + held(15_000).account.waitMs(longestWaitMs(15_000))).toBeLessThanOrEqual(16_000);
  expect(held(15_000, true).account.waitMs(4_000)).toBe(0);
  expect(held(15_000).account.waitMs(0)).toBe(0);
});

test.for([true, false])(
  "what was given back (in order: %s) begins nothing, and an answer that comes late does not make it ours again",
  async (isOver) => {
    const given: string[] = [];
    const leases = { release: async () => void given.push("released"), abandon: async () => void given.push("abandoned") };
    const clock = { now: () => 0 };
    const parts = { store: { leases } as unknown as Store, clock, leaseMs: LEASE_MS };
    const account = new HeldAccount(parts, NAME, { fence: 1, isClean: true }, momentOf(clock), () => {});
    await account.end(isOver);
    account.confirm(momentOf(clock));
    expect(account.stillOurs()).toBe(false);
    expect(given).toEqual([isOver ? "released" : "abandoned"]);
    vi.advanceTimersByTime(SILENT_MS + 50);
    expect(account.lost.aborted).toBe(false);
  },
);
