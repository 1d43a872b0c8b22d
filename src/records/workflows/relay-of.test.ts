import { expect, test } from "vitest";
import { throughParent } from "./relay-of.ts";

test("a parent reads every result again in each of its later calls, writes what steps need, and they read it", () => {
  // a (100) → b reads a, gives 10 → c reads a and b, gives 1.
  const handed = [
    { level: 1, tokens: 100 },
    { level: 2, tokens: 100 },
    { level: 2, tokens: 10 },
  ];
  const results = [
    { level: 0, tokens: 100 },
    { level: 1, tokens: 10 },
    { level: 2, tokens: 1 },
  ];
  // Before b it has a's 100; before c also what it wrote for b and b's 10; at the end also what it wrote for c and c's 1.
  const read = 100 + (100 + 100 + 10) + (210 + 110 + 1);
  expect(throughParent(handed, results, 0)).toEqual({ read, written: 210, handed: 210 });
});

test("steps side by side take one call, and what was there before is read first", () => {
  const results = [0, 0, 0, 1].map((level) => ({ level, tokens: 5 }));
  const handed = [1, 1, 1].map((level) => ({ level, tokens: 5 }));
  expect(throughParent(handed, results, 7)).toEqual({ read: 7 + 22 + (22 + 15 + 5), written: 15, handed: 15 });
  expect(throughParent([], [], 0)).toEqual({ read: 0, written: 0, handed: 0 });
});
