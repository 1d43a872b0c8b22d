import { expect, test, vi } from "vitest";
import { LookedGauges } from "./looked-gauges.ts";
import type { Gauge } from "./metrics.ts";

const gauge = (name: string): Gauge => ({ name, help: "", type: "gauge", read: () => 1 });

test("however many ask for measurements, the database is asked once in a second; not at all when nobody does", async () => {
  let looks = 0;
  const looked = new LookedGauges([
    async () => {
      looks++;
      return [gauge("a")];
    },
  ]);
  expect(looks).toBe(0);
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    const all = await Promise.all(Array.from({ length: 50 }, () => looked.read()));
    expect([looks, all.every(([one]) => one?.name === "a")]).toEqual([1, true]);
    vi.advanceTimersByTime(999);
    await looked.read();
    expect(looks).toBe(1);
    vi.advanceTimersByTime(1);
    await looked.read();
    expect(looks).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

test("what cannot be looked at is left out, and keeps nothing else from being told", async () => {
  const looked = new LookedGauges([
    () => Promise.reject(new Error("no database")),
    () => new Promise<never>(() => {}),
    async () => [gauge("there")],
  ]);
  const begun = performance.now();
  expect((await looked.read()).map(({ name }) => name)).toEqual(["there"]);
  expect(performance.now() - begun).toBeLessThan(10_000);
});
