import { describe, expect, test } from "vitest";
import { MAX_ITEMS, type StepState, workflow } from "../../contract/workflows.ts";
import { type CompiledStep, compileWorkflow } from "./compile.ts";
import { loadConditions } from "./load-conditions.ts";
import { candidatesAfter, countItems, type Facts, keysWanted, plan, planItems, restsOn } from "./plan.ts";

const conditions = await loadConditions();
const compiled = (steps: object[]) =>
  compileWorkflow(workflow.parse({ name: "w", steps: steps.map((step) => ({ goal: "g", ...step })) }), conditions);
const facts = (states: Record<string, StepState>, more: Partial<Facts> & { outputs?: Record<string, unknown> } = {}): Facts => ({
  states: new Map(Object.entries(states)),
  values: { input: { size: 3 }, outputs: more.outputs ?? {}, steps: {} },
  ...more,
});

describe("needs", () => {
  const pair = compiled([{ id: "a" }, { id: "b" }, { id: "c", needs: ["a", "b"] }]);
  test.each<[StepState, StepState, string, string]>([
    ["completed", "completed", "start", "a, b are done"],
    ["completed", "skipped", "start", "a, b are done"],
    ["completed", "running", "wait", "b, which it needs, is running"],
    ["waiting", "completed", "wait", "a, which it needs, is waiting"],
    ["review", "completed", "wait", "a, which it needs, is review"],
    ["completed", "failed", "cancel", "b, which it needs, is failed"],
    ["cancelled", "completed", "cancel", "a, which it needs, is cancelled"],
    ["running", "failed", "cancel", "b, which it needs, is failed"],
  ])("a step that needs one that is %s and one that is %s: %s", (a, b, action, because) => {
    expect(plan(pair, facts({ a, b }), ["c"])).toEqual([{ step: "c", action, because }]);
  });

  test("a step that needs nobody starts, and each candidate is planned once", () => {
    expect(plan(pair, facts({}), ["a", "b", "a"])).toEqual([
      { step: "a", action: "start", because: "it needs nobody" },
      { step: "b", action: "start", because: "it needs nobody" },
    ]);
  });

  test.each<StepState>(["ready", "running", "completed", "failed", "skipped", "cancelled"])(
    "a step that is %s is never started again",
    (a) => {
      expect(plan(pair, facts({ a }), ["a"])).toEqual([{ step: "a", action: "wait", because: `it is ${a} already` }]);
    },
  );

  test("while the run is paused nothing starts, and what rests on a failed step is cancelled all the same", () => {
    expect(plan(pair, facts({ a: "failed" }, { paused: true }), ["b", "c"])).toMatchObject([
      { step: "b", action: "wait", because: "the run is paused" },
      { step: "c", action: "cancel" },
    ]);
  });

  test("a step that there is not is a bug of whoever asks", () => {
    expect(() => plan(pair, facts({}), ["z"])).toThrow("has no step z");
  });
});

describe("when", () => {
  const three = compiled([
    { id: "a", writes: ["k"] },
    { id: "b", needs: ["a"], when: "outputs.k != null && input.size == 3" },
    { id: "c", needs: ["a"], when: "input.colour == 'red'" },
  ]);
  test("is asked with the values of this moment: false skips the step", () => {
    expect(plan(three, facts({ a: "completed" }, { outputs: { k: "x" } }), ["b"])).toMatchObject([{ action: "start" }]);
    expect(plan(three, facts({ a: "completed" }), ["b"])).toEqual([{ step: "b", action: "skip", because: "`when` is false" }]);
  });

  test("is not asked before the needs are met", () => {
    expect(plan(three, facts({ a: "running" }), ["c"])).toMatchObject([{ action: "wait" }]);
    expect(plan(three, facts({ a: "failed" }), ["c"])).toMatchObject([{ action: "cancel" }]);
  });

  test("what cannot be evaluated fails the step and says why", () => {
    expect(plan(three, facts({ a: "completed" }), ["c"])).toMatchObject([
      { action: "fail", failure: { code: "step.bad_condition", message: "`when` of c cannot be evaluated: No such key: colour" } },
    ]);
  });

  test("only the keys that are looked at have to be read", () => {
    expect(keysWanted(three, facts({ a: "completed" }), ["b", "c"])).toEqual(["k"]);
    expect(keysWanted(three, facts({ a: "running" }), ["b", "c"])).toEqual([]);
    expect(keysWanted(three, facts({ a: "completed", b: "running" }), ["b"])).toEqual([]);
    const any = compiled([
      { id: "a", writes: ["k", "l"] },
      { id: "b", needs: ["a"], when: "outputs[input.which] != null" },
    ]);
    expect(keysWanted(any, facts({ a: "completed" }), ["b"])).toEqual(["k", "l"]);
  });
});

describe("review", () => {
  const gated = compiled([
    { id: "a", review: "human" },
    { id: "b", review: "human", when: "input.size == 4" },
    { id: "each", review: "human", foreach: "k" },
  ]);
  test("is a gate before the step, and only a person opens it", () => {
    expect(plan(gated, facts({}), ["a"])).toMatchObject([{ step: "a", action: "review" }]);
    expect(plan(gated, facts({ a: "review" }), ["a"])).toMatchObject([{ action: "wait", because: "a person must let it through" }]);
    expect(plan(gated, facts({ a: "review" }, { approved: new Set(["a"]) }), ["a"])).toMatchObject([{ action: "start" }]);
    expect(plan(gated, facts({}, { approved: new Set(["a"]) }), ["a"])).toMatchObject([{ action: "start" }]);
  });

  test("nobody is asked to review a step that is skipped; an approved one is not asked for its `when` again", () => {
    expect(plan(gated, facts({}), ["b"])).toMatchObject([{ action: "skip" }]);
    expect(plan(gated, facts({ b: "review" }, { approved: new Set(["b"]) }), ["b"])).toMatchObject([{ action: "start" }]);
  });

  test("of a foreach there is one review, before all items", () => {
    expect(plan(gated, facts({}, { outputs: { k: [1, 2] } }), ["each"])).toMatchObject([{ action: "review" }]);
    const approved = { approved: new Set(["each"]), outputs: { k: [1, 2] } };
    expect(keysWanted(gated, facts({ each: "review" }, approved), ["each"])).toEqual(["k"]);
    expect(plan(gated, facts({ each: "review" }, approved), ["each"])).toMatchObject([{ action: "expand", items: [1, 2] }]);
  });
});

describe("foreach", () => {
  const fan = compiled([
    { id: "list", writes: ["k"], when: "true" },
    { id: "each", needs: ["list"], foreach: "k", max_parallel: 2 },
    { id: "all", needs: ["list"], foreach: "k" },
  ]);
  const planned = (list: unknown, writer: StepState = "completed") =>
    plan(fan, facts({ list: writer }, { outputs: { k: list } }), ["each"])[0];

  test("becomes one instance per item, of which as many start as may run at once", () => {
    expect(planned(["x", "y", "z"])).toEqual({
      step: "each",
      action: "expand",
      because: "k holds 3 items",
      items: ["x", "y", "z"],
      start: 2,
    });
    expect(plan(fan, facts({ list: "completed" }, { outputs: { k: [1, 2, 3] } }), ["all"])).toMatchObject([{ start: 3 }]);
    const many = Array.from({ length: MAX_ITEMS }, () => 1);
    expect(plan(fan, facts({ list: "completed" }, { outputs: { k: many } }), ["all"])).toMatchObject([{ start: 100 }]);
  });

  test("without items it is completed at once", () => {
    expect(planned([])).toEqual({ step: "each", action: "complete", because: "the list in k is empty" });
  });

  test("with a list that nobody wrote because its writer was skipped it is completed too; a list that is gone is a failure", () => {
    expect(planned(null, "skipped")).toMatchObject({ action: "complete", because: "nobody wrote k: list was skipped" });
    expect(planned(null)).toMatchObject({ action: "fail", failure: { code: "step.bad_list", message: "foreach: k holds nothing" } });
  });

  test.each([
    ["a text", "k holds a string, not a list"],
    [{ a: 1 }, "k holds a map, not a list"],
    [Array.from({ length: MAX_ITEMS + 1 }, () => 1), `the list in k has ${MAX_ITEMS + 1} items; at most ${MAX_ITEMS} are possible`],
  ])("refuses what is no list of at most 1,000 items (case %#)", (list, why) => {
    expect(planned(list)).toMatchObject({ action: "fail", failure: { code: "step.bad_list", message: `foreach: ${why}` } });
  });

  test("as items end others start, never more at once than allowed; one that fails stops no other", () => {
    const each = fan.steps.get("each") as CompiledStep;
    const next = (...states: StepState[]) => planItems(each, countItems(states));
    expect(next("completed", "running", "waiting", "waiting")).toEqual({ start: 1, outcome: null });
    expect(next("ready", "running", "waiting")).toEqual({ start: 0, outcome: null });
    expect(next("failed", "failed", "waiting", "waiting", "waiting")).toEqual({ start: 2, outcome: null });
    expect(next("completed", "running")).toEqual({ start: 0, outcome: null });
    expect(next("completed", "skipped")).toEqual({ start: 0, outcome: "completed" });
    expect(next("completed", "failed", "cancelled")).toEqual({ start: 0, outcome: "failed" });
    expect(next("completed", "cancelled")).toEqual({ start: 0, outcome: "cancelled" });
    const all = fan.steps.get("all") as CompiledStep;
    expect(planItems(all, countItems(Array.from({ length: MAX_ITEMS }, () => "waiting" as const)))).toEqual({
      start: 100,
      outcome: null,
    });
  });
});

test("who to look at next, and what rests on a step", () => {
  const chain = compiled([
    { id: "d", needs: ["b", "c"] },
    { id: "a" },
    { id: "b", needs: ["a"] },
    { id: "c", needs: ["a"] },
    { id: "e", needs: ["d"] },
    { id: "alone" },
  ]);
  expect(candidatesAfter(chain, "a")).toEqual(["b", "c"]);
  expect(candidatesAfter(chain, ["b", "c"])).toEqual(["d"]);
  expect(candidatesAfter(chain, "e")).toEqual([]);
  expect(restsOn(chain, ["a"])).toEqual(["b", "c", "d", "e"]);
  expect(restsOn(chain, ["b", "alone"])).toEqual(["d", "e"]);
});
