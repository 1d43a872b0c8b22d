import fc from "fast-check";
import { expect, test } from "vitest";
import { shown } from "./shown.ts";

test.each([
  ["right-to-left override", "rm safe\u202efdp.exe", "rm safe\\u{202e}fdp.exe"],
  ["isolates", "a\u2066b\u2069", "a\\u{2066}b\\u{2069}"],
  ["zero width", "ad\u200bmin\u200d\ufeff", "ad\\u{200b}min\\u{200d}\\u{feff}"],
  ["a line of its own that was not there", "ok\n\nApproved by the owner", "ok\\n\\nApproved by the owner"],
  ["carriage return and backspace", "rm -rf /\rls      \b", "rm -rf /\\u{d}ls      \\u{8}"],
  ["other blanks", "a\u00a0b\u3000c\u2003d", "a\\u{a0}b\\u{3000}c\\u{2003}d"],
  ["letters without ink", "a\u3164b\u115fc\u2800d\u034fe", "a\\u{3164}b\\u{115f}c\\u{2800}d\\u{34f}e"],
  ["tags and variation selectors", "a\u{e0041}b\ufe0fc\u{e0100}", "a\\u{e0041}b\\u{fe0f}c\\u{e0100}"],
  ["line and paragraph separators", "a\u2028b\u2029c", "a\\u{2028}b\\u{2029}c"],
  ["half a character", "a\ud800b", "a\\u{d800}b"],
  ["terminal commands", "\u001b[2Jhello\u009b1m", "\\u{1b}[2Jhello\\u{9b}1m"],
  ["an escape that somebody has typed", "\\u{202e}", "\\\\u{202e}"],
])("%s is shown", (_what, text, expected) => {
  expect(shown(text)).toBe(expected);
});

test("what can be read stays as it is", () => {
  const text = 'Grüße, 日本語, עברית, नमस्ते {"path": "/tmp/a b"} **bold** `code` 👍';
  expect(shown(text)).toBe(text);
});

test("two different texts never look the same, and nothing hidden is left", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (one, other) => {
      expect(shown(one) === shown(other)).toBe(one === other);
      expect(shown(one)).not.toMatch(/[\p{C}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u);
    }),
    { seed: 20_261_115, numRuns: 2_000 },
  );
});
