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

/** As the replacer of JSON.stringify. */
function sorted(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const copy: Record<string, unknown> = Object.create(null);
  for (const [key, inner] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) copy[key] = inner;
  return copy;
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
      expect(text).toBe(JSON.stringify(each, sorted));
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(each)));
    }),
    { seed: 20_261_115, numRuns: 1_000 },
  );
  expect(canonicalJson({ b: 1, a: { d: 2, c: 3 } })).toBe('{"a":{"c":3,"d":2},"b":1}');
});

test("is what JSON.stringify writes of a value whose keys are sorted", () => {
  const values: unknown[] = [
    null,
    Object.assign([], { 2: "after a gap" }),
    [undefined, () => 1, Number.NaN, Number.POSITIVE_INFINITY, -0, 1e21, true],
    { b: undefined, a: [{ d: 1, c: { "": 2, " ": 3 } }], c: () => 1 },
    { at: new Date(0), text: 'quote " slash \\ line \n lone \ud800 é 💡 \u2028', ключ: {}, list: [] },
    JSON.parse('{"__proto__":{"z":1,"a":2},"constructor":1,"10":"ten","9":"nine","!":1,"01":1,"4294967295":1,"4294967294":2}'),
    Object.assign(Object.create(null), { y: 1, x: 2 }),
    Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`${index % 3 === 0 ? "" : "k"}${(index * 37) % 60}`, index])),
  ];
  for (const value of values) expect(canonicalJson(value)).toBe(JSON.stringify(value, sorted));
});
