import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { workflow } from "../src/contract/workflows.ts";
import { compileWorkflow } from "../src/deciders/planning/compile.ts";
import { loadConditions } from "../src/deciders/planning/load-conditions.ts";
import { restsOn } from "../src/deciders/planning/plan.ts";
import { rerunPlan } from "../src/deciders/planning/rerun.ts";
import { SEED } from "./models/seed.ts";
import { anySteps, oracle, type PlayedStep, play } from "./planning-simulation.ts";

const conditions = await loadConditions();
const seeded = (numRuns: number) => ({ seed: SEED, numRuns });

/** Numbers from 0 to below `count`, in a fixed order for each seed. */
function chooser(seed: number): (count: number) => number {
  let state = seed >>> 0 || 1;
  return (count) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * count);
  };
}

describe(`seed ${SEED}`, () => {
  test("W5: whatever ends first, a step starts only when its needs are done, once, and every step ends as the contract says", () => {
    const met = new Map<string, number>();
    fc.assert(
      fc.property(anySteps, fc.array(fc.nat(), { minLength: 3, maxLength: 3 }), (steps, seeds) => {
        const expected = oracle(steps);
        const runs = seeds.map((seed) => play(steps, conditions, chooser(seed)));
        for (const { ends, starts } of runs) {
          for (const [id, state] of expected)
            if (ends.get(id) !== state) throw new Error(`${id} is ${ends.get(id)} and should be ${state}`);
          expect(starts.toSorted()).toEqual(runs[0]?.starts.toSorted());
        }
        for (const state of expected.values()) met.set(state, (met.get(state) ?? 0) + 1);
      }),
      seeded(1_500),
    );
    for (const state of ["completed", "failed", "skipped", "cancelled"])
      expect(met.get(state), `steps that ended ${state}`).toBeGreaterThan(300);
  });

  test("what rests on a step is what cannot be reached without it", () => {
    fc.assert(
      fc.property(anySteps, fc.nat(), (steps, at) => {
        const { id } = steps[at % steps.length] as PlayedStep;
        const needs = new Map(steps.map((step) => [step.id, step.needs]));
        const reaches = (from: string): boolean => (needs.get(from) ?? []).some((need) => need === id || reaches(need));
        const compiled = compileWorkflow(plainly(steps));
        expect(restsOn(compiled, [id]).toSorted()).toEqual([...needs.keys()].filter(reaches).toSorted());
      }),
      seeded(500),
    );
  });

  test("a rerun reuses only what is done and rests on nothing that runs again", () => {
    fc.assert(
      fc.property(anySteps, fc.nat(), (steps, at) => {
        const { id } = steps[at % steps.length] as PlayedStep;
        const states = oracle(steps);
        const { reused, again } = rerunPlan(compileWorkflow(plainly(steps)), states, [id]);
        expect([...reused, ...again].toSorted()).toEqual([...states.keys()].toSorted());
        expect(again).toContain(id);
        for (const one of reused) {
          expect(["completed", "skipped"]).toContain(states.get(one));
          for (const need of steps.find((step) => step.id === one)?.needs ?? []) expect(reused).toContain(need);
        }
        // Nothing more than it must: each has a reason of its own, or a need that has.
        for (const one of again) {
          const own = one === id || !["completed", "skipped"].includes(states.get(one) as string);
          expect(own || steps.find((step) => step.id === one)?.needs.some((need) => again.includes(need))).toBe(true);
        }
      }),
      seeded(500),
    );
  });
});

function plainly(steps: readonly PlayedStep[]) {
  return workflow.parse({ name: "played", steps: steps.map(({ id, needs }) => ({ id, goal: "play", needs })) });
}
