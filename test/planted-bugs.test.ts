import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BUGS } from "./planted/bugs.ts";

test("every planted bug fits the source: its text is there exactly once", () => {
  const texts = new Map<string, string>();
  const textOf = (file: string): string => {
    const text = texts.get(file) ?? readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
    texts.set(file, text);
    return text;
  };
  expect(BUGS.filter(({ file, from }) => textOf(file).split(from).length !== 2).map(({ name, file }) => `${file}: ${name}`)).toEqual([]);
});
