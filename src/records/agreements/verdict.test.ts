import fc from "fast-check";
import { expect, test } from "vitest";
import type { Rule } from "../../contract/proposals.ts";
import { neededYes, type Tally, verdictOf } from "./verdict.ts";

const tally = (yes: number, no = 0, veto = 0): Tally => ({ yes, no, veto });
const kindOf = (rule: Rule, electors: number, votes: Tally) => verdictOf(rule, electors, votes).kind;

test.each<[Rule, number, Tally, string]>([
  ["all", 2, tally(1), "undecided"],
  ["all", 2, tally(2), "met"],
  ["all", 2, tally(0, 1), "lost"],
  ["majority", 4, tally(2), "undecided"],
  ["majority", 4, tally(3), "met"],
  ["majority", 4, tally(0, 2), "lost"],
  ["majority", 5, tally(2, 2), "undecided"],
  ["majority", 1, tally(1), "met"],
  [{ k: 2 }, 5, tally(1, 3), "undecided"],
  [{ k: 2 }, 5, tally(1, 4), "lost"],
  [{ k: 2 }, 5, tally(2, 3), "met"],
  [{ k: 2 }, 5, tally(2, 0, 1), "lost"],
])("%j of %i with %j is %s", (rule, electors, votes, expected) => {
  expect(kindOf(rule, electors, votes)).toBe(expected);
});

test("A2 a rule is met exactly when enough have said yes and nobody vetoed, and lost exactly when no further votes could meet it", () => {
  const cases = fc.integer({ min: 1, max: 8 }).chain((electors) =>
    fc.record({
      electors: fc.constant(electors),
      rule: fc.oneof(
        fc.constantFrom<Rule>("all", "majority"),
        fc.integer({ min: 1, max: electors }).map((k): Rule => ({ k })),
      ),
      votes: fc.array(fc.constantFrom("yes", "no", "veto", null), { minLength: electors, maxLength: electors }),
    }),
  );
  fc.assert(
    fc.property(cases, ({ electors, rule, votes }) => {
      const count = (vote: string | null): number => votes.filter((each) => each === vote).length;
      const now = tally(count("yes"), count("no"), count("veto"));
      const best = tally(now.yes + count(null), now.no, now.veto);
      const enough = (each: Tally): boolean => each.veto === 0 && each.yes >= neededYes(rule, electors);
      expect(kindOf(rule, electors, now)).toBe(enough(now) ? "met" : enough(best) ? "undecided" : "lost");
    }),
    { seed: 20_261_115, numRuns: 2_000 },
  );
});
