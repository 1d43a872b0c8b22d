import fc from "fast-check";
import { expect, test } from "vitest";
import { globMatches, globsOverlap } from "./glob.ts";

/** The same on every run; fast-check prints it when something is found. */
const SEED = 20_261_115;
const glob = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 6 });
const text = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 8 });
const asRegExp = (written: string): RegExp => new RegExp(`^${written.replaceAll("*", ".*")}$`);

test("a wildcard matches what it stands for, and nothing else", () => {
  fc.assert(
    fc.property(glob, text, (written, name) => {
      expect(globMatches(written, name)).toBe(asRegExp(written).test(name));
    }),
    { seed: SEED, numRuns: 5_000 },
  );
});

test("two wildcards overlap when some text matches both", () => {
  const texts = [""];
  for (let index = 0; texts.length < 2 ** 11; index++) texts.push(`${texts[index]}a`, `${texts[index]}b`);
  const short = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 5 });
  fc.assert(
    fc.property(short, short, (one, other) => {
      expect(globsOverlap(one, other)).toBe(texts.some((name) => asRegExp(one).test(name) && asRegExp(other).test(name)));
    }),
    { seed: SEED, numRuns: 300 },
  );
});
