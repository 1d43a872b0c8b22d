import { expect, test } from "vitest";
import { idSource } from "./ids.ts";
import { systemRandom } from "./random.ts";

test("ids rise and differ, however many are made in a millisecond, also while the clock stands still or goes back", () => {
  const times = [1_000, 1_000, 1_000, 999, 1_001];
  for (const bytes of [systemRandom.bytes, (count: number) => new Uint8Array(count).fill(255)]) {
    let now = 0;
    const newId = idSource(
      { now: () => times[Math.min(times.length - 1, Math.floor(now++ / 2_000))] as number },
      { ...systemRandom, bytes },
    );
    const ids = Array.from({ length: 10_000 }, newId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
    expect(ids.every((id) => /^[0-9a-hjkmnp-tv-z]{20}$/.test(id))).toBe(true);
  }
});
