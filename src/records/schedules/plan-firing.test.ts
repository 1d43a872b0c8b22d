import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CatchUp } from "../../contract/schedules.ts";
import type { CronRule } from "./cron-rule.ts";
import { ON_TIME_MS, planFiring } from "./plan-firing.ts";

/** Due at these times. */
function ruleOf(times: readonly number[]): CronRule {
  return {
    next: (after) => times.find((time) => time > after) ?? null,
    newest: (count, until) => times.filter((time) => time <= until).slice(-count),
  };
}

interface Told {
  readonly started: number[];
  missed: number;
}

/** Says of each time by itself what becomes of it, the way the documentation does. */
function naively(times: readonly number[], catchUp: CatchUp, now: number, busyUntil: number | null): Told {
  const passed = times.filter((time) => time <= now);
  const free = passed.filter((time) => busyUntil === null || time > busyUntil);
  const newest = free.at(-1);
  if (catchUp === "all") return { started: passed.slice(-100), missed: Math.max(0, passed.length - 100) };
  const started = newest === undefined || (catchUp === "skip" && now - newest > ON_TIME_MS) ? [] : [newest];
  return { started, missed: passed.length - started.length };
}

const situation = fc.record({
  gaps: fc.array(fc.constantFrom(1_000, 30_000, 60_000, 61_000, 3_600_000), { minLength: 1, maxLength: 250 }),
  catchUp: fc.constantFrom<CatchUp>("skip", "once", "all"),
  /** Where among the times it is now, and how long after that one. */
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  later: fc.constantFrom(0, 1, 59_999, 60_000, 60_001, 999_999),
  busy: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  maxCounted: fc.constantFrom(100, 120, 10_000),
});

describe("times that passed", () => {
  test("become what is written of skip, once and all, whatever passed when", async () => {
    await fc.assert(
      fc.asyncProperty(situation, async ({ gaps, catchUp, at, later, busy, maxCounted }) => {
        let time = 1_000_000;
        const times = gaps.map((gap) => (time += gap));
        const now = (times[Math.floor(at * (times.length - 1))] as number) + later;
        const busyUntil = busy === null ? null : Math.floor(times[0] as number) + Math.floor(busy * (now - (times[0] as number)));
        const rule = ruleOf(times);
        const wanted = naively(times, catchUp, now, busyUntil);
        const started: number[] = [];
        let missed = 0;
        let nextAt: number | null = times[0] as number;
        // Each task ends at once: what is started after the first has nothing in its way.
        let ended = busyUntil;
        let exact = true;
        while (nextAt !== null && nextAt <= now) {
          const firing = await planFiring(rule, { nextAt, catchUp }, now, ended, maxCounted);
          if (firing.time !== null) started.push(firing.time);
          missed += firing.missed;
          exact &&= !firing.atLeast;
          expect(firing.busy).toBeLessThanOrEqual(firing.missed);
          expect(firing.nextAt ?? Number.POSITIVE_INFINITY).toBeGreaterThan(nextAt);
          nextAt = firing.nextAt;
          ended = nextAt === null ? null : nextAt - 1;
        }
        expect(started).toEqual(wanted.started);
        if (exact) expect(missed).toBe(wanted.missed);
        else expect(missed).toBeLessThanOrEqual(wanted.missed);
        expect(nextAt).toBe(rule.next(now));
      }),
      { numRuns: 500 },
    );
  });

  test("none: nothing is done", async () => {
    const firing = await planFiring(ruleOf([5_000]), { nextAt: 5_000, catchUp: "once" }, 4_999, null);
    expect(firing).toEqual({ time: null, missed: 0, busy: 0, atLeast: false, nextAt: 5_000 });
  });
});
