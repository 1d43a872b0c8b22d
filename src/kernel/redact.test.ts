import fc from "fast-check";
import { expect, test } from "vitest";
import { Redaction, redactor } from "./redact.ts";

const KEY = 'sk-"quoted"\\and\nbroken';

test("a secret is replaced by its name, also inside JSON and inside a URL", () => {
  const redact = redactor([["KEY", KEY]]);
  expect(redact(`<${KEY}>`)).toBe("<[secret KEY]>");
  expect(redact(JSON.stringify({ said: KEY }))).toBe('{"said":"[secret KEY]"}');
  expect(redact(JSON.stringify(JSON.stringify([KEY])))).toBe('"[\\"[secret KEY]\\"]"');
  expect(redact(`https://host/?key=${encodeURIComponent(KEY)}`)).toBe("https://host/?key=[secret KEY]");
});

test("a secret that contains another is found as itself; short ones stay", () => {
  const redact = redactor([
    ["SHORT", "abc"],
    ["INNER", "secret-1"],
    ["OUTER", "secret-123"],
  ]);
  expect(redact("abc secret-12 secret-123")).toBe("abc [secret INNER]2 [secret OUTER]");
});

test("signs of regular expressions in a secret are signs", () => {
  expect(redactor([["A", "a.c*(d)|[e]^$"]])("abcdef a.c*(d)|[e]^$ abc")).toBe("abcdef [secret A] abc");
});

test("of two secrets that overlap nothing is left, also where the second ends in a later piece", () => {
  const redaction = new Redaction();
  redaction.add([
    ["LEFT", "abcdef-123"],
    ["RIGHT", "123-uvwxyz"],
  ]);
  expect(redaction.text("<abcdef-123-uvwxyz>")).toBe("<[secret LEFT]>");
  const out: string[] = [];
  const stream = redaction.stream((text) => out.push(text));
  for (const piece of ["<abc", "def-123", "-uv", "wxyz", ">"]) stream.push(piece);
  stream.end();
  expect(out.join("")).toBe("<[secret LEFT]>");
});

test("one line of a key that has many gives it away, and its heading does not", () => {
  const redact = redactor([["PEM", "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASCBKcwggSj\n-----END KEY-----\n"]]);
  expect(redact("    MIIEvQIBADANBgkqhkiG\r\n -----END KEY-----")).toBe("    [secret PEM]\r\n -----END KEY-----");
});

test("many secrets that begin alike are told apart as a slow search would", () => {
  const piece = fc.constantFrom("sk-live-", "a", "b", "sk-", "é", "😀");
  const value = fc.string({ unit: piece, minLength: 6, maxLength: 8 }).filter(({ length }) => length >= 6);
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 30 }), fc.array(fc.oneof(piece, value), { maxLength: 30 }), (values, words) => {
      const redact = redactor(values.map((one) => ["S", one] as const));
      const text = words.join("");
      const hidden = [...values].flatMap((one) =>
        Array.from({ length: text.length }, (_, at) => at).flatMap((at) => (text.startsWith(one, at) ? [[at, at + one.length]] : [])),
      );
      const isHidden = (at: number) => hidden.some(([from, to]) => at >= (from as number) && at < (to as number));
      const left = Array.from({ length: text.length }, (_, at) => (isHidden(at) ? "" : text[at])).join("");
      expect(redact(text).replaceAll("[secret S]", "")).toBe(left);
    }),
  );
});

test("what is added later is hidden as well, and what was there before still is", () => {
  const redaction = new Redaction();
  const { text, value } = redaction;
  const same = { a: ["first-secret"] };
  expect(value(same)).toBe(same);
  redaction.add([["FIRST", "first-secret"]]);
  redaction.add([["SECOND", "second-secret"]]);
  expect(text("first-secret, second-secret")).toBe("[secret FIRST], [secret SECOND]");
  expect(value({ "first-secret": ["x", { y: "second-secret" }], n: 1 })).toEqual({
    "[secret FIRST]": ["x", { y: "[secret SECOND]" }],
    n: 1,
  });
  const untouched = { a: [{ b: "c" }] };
  expect(value(untouched)).toBe(untouched);
});

test("in pieces, however they are cut, no secret comes through, and what is none does", () => {
  const redaction = new Redaction();
  redaction.add([
    ["ONE", "aabaab"],
    ["TWO", "aabaabcc"],
    ["THREE", "abcabcabc"],
  ]);
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "c", "aabaab", "abcabcabc"), maxLength: 40 });
  fc.assert(
    fc.property(letters, fc.array(fc.nat(12), { minLength: 1 }), (whole, cuts) => {
      let out = "";
      const stream = redaction.stream((text) => {
        out += text;
      });
      for (let from = 0, turn = 0; from < whole.length; turn++) {
        const length = (cuts[turn % cuts.length] as number) + 1;
        stream.push(whole.slice(from, from + length));
        from += length;
      }
      stream.end();
      for (const secret of ["aabaab", "aabaabcc", "abcabcabc"]) expect(out).not.toContain(secret);
      expect(out).toBe(redaction.text(whole));
      expect(out.replace(/\[secret \w+\]/g, "").length).toBeLessThanOrEqual(whole.length);
    }),
  );
});
