import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "./canonical-json.ts";

/** The same value, built in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
}

test("the same value gives the same text, in whatever order it was built, and the text gives the value back", () => {
  const key = fc.oneof(fc.string(), fc.nat(20).map(String));
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ depthSize: "small" }, fc.integer(), fc.string(), fc.array(tie("any")), fc.dictionary(key, tie("any"))),
  })).any;
  fc.assert(
    fc.property(value, (each) => {
      const text = canonicalJson(each);
      expect(canonicalJson(reversed(each))).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(each)));
    }),
    { seed: 20_261_115, numRuns: 1_000 },
  );
  expect(canonicalJson({ b: 1, a: { d: 2, c: 3 } })).toBe('{"a":{"c":3,"d":2},"b":1}');
});
