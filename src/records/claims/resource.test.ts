import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { overlaps, parseResource } from "./resource.ts";

const SEED = 20_261_115;
const meet = (one: string, other: string): boolean => overlaps(parseResource(one), other);

test.each([
  ["repo/src/**", "repo/src/a.ts", true],
  ["repo/src/**", "repo/src/deep/a.ts", true],
  ["repo/src/**", "repo/src", true],
  ["repo/src/**", "repo/**", true],
  ["repo/src/**", "repo/srcs/a.ts", false],
  ["repo/src/**", "repo/docs/**", false],
  ["repo/src", "repo/src/a.ts", false],
  ["repo/*", "repo/a", true],
  ["repo/*", "repo/a/b", false],
  ["repo/*", "repo", false],
  ["repo/*/a", "repo/src/*", true],
  ["repo/*.ts", "repo/a.ts", true],
  ["repo/*.ts", "repo/a*", true],
  ["repo/*.ts", "repo/a.md", false],
  ["repo/a*.ts", "repo/b*", false],
  ["repo/**/a.ts", "repo/a.ts", true],
  ["repo/**/a.ts", "repo/x/y/a.ts", true],
  ["repo/**/a.ts", "repo/x/y/b.ts", false],
  ["repo/**/test/**", "repo/x/test/y", true],
  ["repo/**/test/**", "repo/x/tests/y", false],
  ["repo/a/**/z", "repo/**/y", false],
  ["a/aba*ba", "a/aba", false],
  ["/etc/passwd", "/etc/**", true],
  ["a//b", "a/b", false],
  ["app/[id]/page.tsx", "app/i/page.tsx", false],
])("%s and %s overlap: %s", (one, other, expected) => {
  expect(meet(one, other)).toBe(expected);
  expect(meet(other, one)).toBe(expected);
});

describe("malformed", () => {
  test.each(["", "*", "**", "*/a", "re*/a", "x/".repeat(41), `r/${"ü".repeat(600)}`])("%j", (name) => {
    expect(() => parseResource(name)).toThrow(expect.objectContaining({ code: "request.malformed" }));
  });
});

/** The same question, asked by trying every name that could be meant. */
const NAMES = namesUpTo(4);
function namesUpTo(depth: number): string[] {
  const elements = ["a", "b", "ab", "ba"];
  let level = ["r"];
  const all = [...level];
  for (let index = 1; index < depth; index++) {
    level = level.flatMap((name) => elements.map((element) => `${name}/${element}`));
    all.push(...level);
  }
  return all;
}
const expressionOf = (pattern: string): RegExp => {
  const parts = pattern.split("/").map((element) => (element === "**" ? "(/[ab]+)*" : `/${element.replaceAll("*", "[ab]*")}`));
  return new RegExp(`^${parts.join("")}$`);
};

test("agrees with trying all names, on small patterns", () => {
  const element = fc.constantFrom("a", "b", "*", "**", "a*", "*b");
  const pattern = fc.array(element, { maxLength: 2 }).map((elements) => ["r", ...elements].join("/"));
  fc.assert(
    fc.property(pattern, pattern, (one, other) => {
      const [first, second] = [expressionOf(one), expressionOf(other)];
      expect(meet(one, other)).toBe(NAMES.some((name) => first.test(`/${name}`) && second.test(`/${name}`)));
    }),
    { seed: SEED, numRuns: 2_000 },
  );
});

test("a hostile pattern is decided at once", () => {
  const one = `r/${"a*".repeat(240)}`;
  const other = `r/${"a".repeat(480)}b`;
  const started = performance.now();
  for (let index = 0; index < 20; index++) expect(meet(one, other)).toBe(true);
  // Tried out one by one, the ways to fill the gaps do not end.
  expect(performance.now() - started).toBeLessThan(5_000);
});
