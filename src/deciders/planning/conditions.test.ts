import fc from "fast-check";
import { expect, test } from "vitest";
import type { Condition, ConditionValues } from "./condition.ts";
import { loadConditions } from "./load-conditions.ts";

const conditions = await loadConditions();
const SEED = 20_261_115;
const values: ConditionValues = {
  input: { n: 3, half: 1.5, price: 3, list: [1, 2, 3], deep: { on: true }, big: 2 ** 60 },
  outputs: { client: "code", report: { ok: true }, empty: null },
  steps: { a: { status: "completed", attempts: 2, answer: "yes" }, "b-c": { status: "skipped", attempts: 0 } },
};
const compiled = (source: string): Condition => {
  const condition = conditions.compile(source);
  if ("problem" in condition) throw new Error(condition.problem);
  return condition;
};

test.each([
  ["outputs.client != null", true],
  ["outputs.empty != null", false],
  ["outputs.nobody_wrote_it != null", false],
  ["outputs.report.ok && outputs['client'] == 'code'", true],
  ["input.n + 1 == 4 && input.n % 2 == 1", true],
  ["input.n * 1.5 == 4.5 && input.half + 1 == 2.5", true],
  ["input.n == 3.0 && input.half > 1", true],
  ["input.big > 1", true],
  ["has(input.nowhere) && input.nowhere", false],
  ["input.deep.on", true],
  ["steps.a.status == 'completed' && steps.a.attempts == 2 && steps.a.answer == 'yes'", true],
  ["steps['b-c'].status == 'skipped' && steps['b-c'].answer == null", true],
  ["steps.later.status == 'waiting' && steps.later.attempts == 0", true],
  ["input.list.exists(x, x == 2) && input.list.size() == 3 && 3 in input.list", true],
])("%s is %s", (source, holds) => {
  expect(compiled(source).evaluate(values)).toEqual({ holds });
});

test.each([
  ["input.nowhere == 1", "No such key: nowhere"],
  ["input.list[7] == 1", "index out of bounds"],
  ["input.n / 0 == 1", "division by zero"],
  ["input.n", "it came to a number, not to true or false"],
  ["outputs.empty", "it came to null, not to true or false"],
  ["outputs.report", "it came to a map, not to true or false"],
  ["input.constructor != null", "No such key: constructor"],
  ["input.__proto__ != null", "No such key: __proto__"],
  ["outputs[input.which] == 1", "No such key: which"],
])("%s is a problem when it is asked, and no exception", (source, problem) => {
  expect(compiled(source).evaluate(values)).toEqual({ problem: expect.stringContaining(problem) });
});

test.each([
  ["1 +", "Unexpected token: EOF", 3],
  ["inputs.x", "Unknown variable: inputs; a condition knows input, outputs and steps", 0],
  ["1 + 1", "it comes to int, not to true or false", 0],
  ["now() > 1", "found no matching overload", 0],
  ["has(outputs.x)", "has(outputs.x) is always true: write outputs.x != null", 0],
  ["has(steps.a)", "has(steps.a) is always true: ask for its status", 0],
  ["input.s.matches('(a+)+$')", "`matches` is not available", 0],
  ["cel.bind(x, 1, x == 1)", "`cel.bind` is not available", 0],
  ["input.l.all(x, input.l.all(y, x == y))", "`all` stands inside another loop", 15],
  ["[1].map(x, x).map(x, x).map(x, x).exists(x, x > 0)", "there are more than 3 loops", expect.any(Number)],
  [Array.from({ length: 150 }, () => "true").join(" && "), expect.any(String), expect.any(Number)],
])("%s is refused before it is asked", (source, problem, offset) => {
  const said = typeof problem === "string" ? expect.stringContaining(problem) : problem;
  expect(conditions.compile(source)).toEqual({ problem: said, offset });
});

test("what an expression names is known before it is asked", () => {
  const { outputs, steps } = compiled(
    "outputs.a != null && outputs['b c'] == steps.x.answer && input.l.exists(i, i == steps['y'].attempts)",
  );
  expect({ outputs, steps }).toEqual({ outputs: ["a", "b c"], steps: ["x", "y"] });
  expect(compiled("outputs[input.which] != null").outputs).toBe("all");
  expect(compiled("size(steps) > 1").steps).toBe("all");
});

test("a loop over too much is refused, a look at one large value is not", () => {
  const large = {
    ...values,
    outputs: { client: "x".repeat(10_000_000) },
    input: { list: Array.from({ length: 20_000 }, (_, index) => index) },
  };
  expect(compiled("outputs.client != null && size(input.list) > 1").evaluate(large)).toEqual({ holds: true });
  expect(compiled("input.list.all(x, x in input.list)").evaluate(large)).toEqual({ problem: "there is too much to look through" });
  let deep: unknown = 1;
  for (let level = 0; level < 10_000; level++) deep = [deep];
  expect(compiled("size(input.deep) == 1").evaluate({ ...values, input: { deep } })).toEqual({ problem: "values are nested too deeply" });
});

test("names of the language itself are names like any other", () => {
  for (const name of ["constructor", "toString", "hasOwnProperty"]) {
    expect(compiled(`[1].exists(${name}, ${name} == 1)`).evaluate(values)).toEqual({ holds: true });
    expect(compiled(`outputs.${name} == null && steps.${name}.attempts == 0 && !has(input.${name})`).evaluate(values)).toEqual({
      holds: true,
    });
    expect(conditions.compile(`${name}.x == 1`)).toMatchObject({ problem: expect.stringContaining("Unknown variable") });
    expect(conditions.compile(`input.${name}() == 1`)).toMatchObject({ problem: expect.any(String) });
  }
});

test(`whatever is written, nothing is thrown (seed ${SEED})`, () => {
  const word = fc.constantFrom(
    "input",
    "outputs",
    "steps",
    ".",
    "a",
    "[",
    "]",
    "(",
    ")",
    "'x'",
    "1",
    "==",
    "&&",
    "!",
    "?",
    ":",
    ",",
    "has(",
    ".exists(x,",
    "{",
    "}",
    "null",
    "-",
    "in",
    "\\",
    '"',
  );
  const part = fc.constantFrom(
    "input.n",
    "input",
    "input.no",
    "outputs.client",
    "outputs",
    "steps.a.attempts",
    "steps",
    "1",
    "'x'",
    "null",
    "true",
    "input.list",
    "[1, 'a']",
    "{'a': 1}",
  );
  const sign = fc.constantFrom("==", "!=", "<", "&&", "||", "+", "in", "/", "%");
  const expression = fc
    .array(fc.tuple(part, sign), { maxLength: 4 })
    .chain((parts) => part.map((last) => [...parts.flat(), last].join(" ")));
  const source = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.array(word, { maxLength: 25 }).map((words) => words.join(" ")),
    expression,
  );
  let asked = 0;
  fc.assert(
    fc.property(source, (text) => {
      const condition = conditions.compile(text);
      if ("problem" in condition) return typeof condition.problem === "string";
      asked++;
      const answer = condition.evaluate(values);
      return "holds" in answer || typeof answer.problem === "string";
    }),
    { seed: SEED, numRuns: 3_000 },
  );
  expect(asked).toBeGreaterThan(100);
  expect(conditions.compile("(".repeat(9_000))).toMatchObject({ problem: expect.any(String) });
  expect(conditions.compile(`${"!".repeat(9_000)}true`)).toMatchObject({ problem: expect.any(String) });
});
