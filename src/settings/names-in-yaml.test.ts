// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeNames, encodeNames, reservedCharacterIn, substituteNames } from "./names-in-yaml.ts";

test("encoding keeps every column, and decoding takes it back", () => {
  const part = fc.oneof(fc.constantFrom("${A}", "$${A}", "${", "}", "$", "${a-b}", "${${A}}", "\n", "é"), fc.string());
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const text = parts.join("");
      fc.pre(reservedCharacterIn(text) < 0);
      const encoded = encodeNames(text);
      expect(encoded.length).toBe(text.length);
      expect(decodeNames(encoded)).toBe(text);
    }),
  );
});

test("names are replaced, two dollars stand for the text itself, and what is no name stays", () => {
  const substituted = substituteNames(encodeNames("${A} $${A} ${a-b} ${B}${A}"), (name) => `<${name}>`);
  expect(substituted).toBe("<A> ${A} ${a-b} <B><A>");
});
