import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { firstOf } from "./first-of.ts";

test("the first that aborts gives the reason, and the time is not what was up", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const first = firstOf([one.signal, other.signal], 60_000);
  expect(first.signal.aborted).toBe(false);
  other.abort("enough");
  one.abort("too late");
  expect([first.signal.aborted, first.signal.reason, first.isTimeUp()]).toEqual([true, "enough", false]);
  first.over();
});

test("one that has aborted before counts", () => {
  const first = firstOf([AbortSignal.abort("before")], 60_000);
  expect(first.signal.reason).toBe("before");
  first.over();
});

test("when the time is up it says so", async () => {
  const first = firstOf([new AbortController().signal], 5);
  await sleep(50);
  expect([first.signal.aborted, first.isTimeUp()]).toEqual([true, true]);
});

test("once it is over nothing aborts it", async () => {
  const one = new AbortController();
  const first = firstOf([one.signal], 5);
  first.over();
  one.abort();
  await sleep(50);
  expect([first.signal.aborted, first.isTimeUp()]).toEqual([false, false]);
});
