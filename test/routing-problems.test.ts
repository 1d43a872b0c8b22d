import fc from "fast-check";
import { expect, test } from "vitest";
import { bindingProblems } from "../src/deciders/routing/binding-problems.ts";
import { SEED } from "./models/seed.ts";
import { anyAddress, anyBindings, oracleOf } from "./routing-oracle.ts";

test(`a rule that is called never used never wins (seed ${SEED})`, () => {
  let told = 0;
  fc.assert(
    fc.property(anyBindings(12), fc.array(anyAddress, { minLength: 200, maxLength: 200, size: "max" }), (bindings, addresses) => {
      const problems = bindingProblems({ agents: { main: {} }, unrouted: "default", bindings, lineOf: () => null }, () => "active");
      const unused = new Set(problems.map(({ index }) => index));
      told += unused.size;
      const winners = new Set(addresses.map(oracleOf(bindings)).map((winner) => winner?.index));
      expect([...unused].filter((index) => winners.has(index as number))).toEqual([]);
    }),
    { seed: SEED, numRuns: 300 },
  );
  expect(told).toBeGreaterThan(20);
});
