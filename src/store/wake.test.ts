import { expect, test } from "vitest";
import { Wake, type WakeTopic } from "./wake.ts";

test("a hint wakes all who wait for its topic, once, and whoever looked before it came does not wait", async () => {
  const wake = new Wake();
  const seen = wake.version("ledger");
  let woken = 0;
  const waiting = [1, 2].map(() => wake.wait("ledger", seen, 60_000).then(() => woken++));
  const other = wake.wait("work", wake.version("work"), 60_000).then(() => woken++);
  wake.hint("ledger");
  await Promise.all([...waiting, wake.wait("ledger", seen, 60_000)]);
  expect(woken).toBe(2);
  wake.hint("work");
  await other;
});

test("whoever stops waiting is not woken any more, and nobody else is kept from it", async () => {
  const wake = new Wake();
  const stop = new AbortController();
  const [first, second] = [wake.wait("mail", 0, 60_000, stop.signal), wake.wait("mail", 0, 60_000)];
  const short = wake.wait("mail", 0, 1);
  stop.abort();
  await Promise.all([first, short]);
  wake.hint("mail");
  await second;
});

test("a topic that only a newer program knows is nobody's matter", () => {
  expect(() => new Wake().hint("from the future" as WakeTopic)).not.toThrow();
});
