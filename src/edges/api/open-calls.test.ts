import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { OPERATOR } from "../../kernel/caller.ts";
import { type CallLimits, OpenCalls } from "./open-calls.ts";

const LIMITS: CallLimits = { requests: 2, streams: 3, streamsPerToken: 2, callsPerToken: 2 };
const by = (tokenId: string | null) => ({ caller: OPERATOR, tokenId });

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => vi.useRealTimers());

test("no more requests at once than allowed", () => {
  const calls = new OpenCalls(LIMITS, async () => new Set());
  const [first] = [calls.begin(), calls.begin()];
  expect(() => calls.begin()).toThrow(expect.objectContaining({ code: "request.busy" }));
  first?.();
  calls.begin();
});

test("no more streams than allowed, in all and for one token", () => {
  const calls = new OpenCalls(LIMITS, async () => new Set());
  const [close] = [calls.beginStream(by("a")), calls.beginStream(by("a"))];
  expect(() => calls.beginStream(by("a"))).toThrow(expect.objectContaining({ code: "request.busy" }));
  calls.beginStream(by("b"));
  expect(() => calls.beginStream(by("c"))).toThrow(expect.objectContaining({ code: "request.busy" }));
  close?.();
  calls.beginStream(by("c"));
  expect(calls.counts).toEqual({ requests: 0, streams: 3 });
});

test("one token cannot keep the others out", () => {
  const calls = new OpenCalls(LIMITS, async () => new Set());
  const open = (tokenId: string | null) => {
    calls.refuseCrowd(by(tokenId));
    return calls.guard(by(tokenId));
  };
  const [first] = [open("a"), open("a")];
  expect(() => open("a")).toThrow(expect.objectContaining({ code: "request.busy" }));
  for (const each of ["b", null, null, null]) open(each);
  first?.release();
  open("a");
});

test("whatever a token has open ends when it is revoked, and one look serves all", async () => {
  const valid = new Set(["a", "b"]);
  const asked: (readonly string[])[] = [];
  const calls = new OpenCalls(LIMITS, async (ids) => {
    asked.push(ids);
    return valid;
  });
  const guards = [calls.guard(by("a")), calls.guard(by("a")), calls.guard(by("b")), calls.guard(by(null))];
  valid.delete("a");
  await vi.advanceTimersByTimeAsync(500);
  expect(guards.map(({ signal }) => signal.aborted)).toEqual([true, true, false, false]);
  expect(asked).toEqual([["a", "b"]]);
  for (const { release } of guards) release();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked).toHaveLength(1);
  calls.guard(by("b"));
  await vi.advanceTimersByTimeAsync(500);
  expect(asked).toHaveLength(2);
});

test("what nobody can vouch for ends after ten seconds, a short silence of the database changes nothing", async () => {
  let away = true;
  const calls = new OpenCalls(LIMITS, async (ids) => {
    if (away) throw new Error("away");
    return new Set(ids);
  });
  const { signal } = calls.guard(by("a"));
  await vi.advanceTimersByTimeAsync(9_000);
  away = false;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(signal.aborted).toBe(false);
  away = true;
  await vi.advanceTimersByTimeAsync(12_000);
  expect(signal.aborted).toBe(true);
});
