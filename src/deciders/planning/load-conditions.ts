import type { ASTNode, Environment } from "@marcbachmann/cel-js";
import { messageOf } from "../../kernel/failure.ts";
import type { Condition, ConditionProblem, Conditions, ConditionValues, StepFacts } from "./condition.ts";
import { type ConditionUses, conditionUses } from "./condition-uses.ts";
import { type Cost, celValue, isTooMuch } from "./condition-values.ts";

/** A condition asks something; whoever needs a program writes a step. */
const LIMITS = { maxAstNodes: 200, maxDepth: 30, maxListElements: 100, maxMapEntries: 100, maxCallArguments: 10 };
const NOT_BEGUN: StepFacts = { status: "waiting", attempts: 0, answer: null };

/** Loads CEL: nothing that only starts needs it. What it returns may be kept for good. */
export async function loadConditions(): Promise<Conditions> {
  const cel = await import("@marcbachmann/cel-js");
  const environment = new cel.Environment({ unlistedVariablesAreDyn: false, homogeneousAggregateLiterals: false, limits: LIMITS })
    .registerVariable("input", "map")
    .registerVariable("outputs", "map")
    .registerVariable("steps", "map");
  // Whether a number of an input is whole is an accident of the value: `input.price * 1.2` must not fail for a price of 3.
  for (const [sign, apply] of ARITHMETIC)
    environment
      .registerOperator(`int ${sign} double`, (a: bigint, b: number) => apply(Number(a), b))
      .registerOperator(`double ${sign} int`, (a: number, b: bigint) => apply(a, Number(b)));
  return { compile: (source) => compileCondition(environment, source) };
}

const ARITHMETIC = [
  ["+", (a: number, b: number) => a + b],
  ["-", (a: number, b: number) => a - b],
  ["*", (a: number, b: number) => a * b],
  ["/", (a: number, b: number) => a / b],
] as const;

function compileCondition(environment: Environment, source: string): Condition | ConditionProblem {
  let parsed: ReturnType<Environment["parse"]>;
  try {
    parsed = environment.parse(source);
  } catch (error) {
    return problemOf(error);
  }
  const uses = conditionUses(parsed.ast as ASTNode);
  if ("problem" in uses) return uses;
  const checked = parsed.check();
  if (!checked.valid) return problemOf(checked.error);
  if (checked.type !== "bool" && checked.type !== "dyn") return { problem: `it comes to ${checked.type}, not to true or false`, offset: 0 };
  const { input, outputs, steps, loops, nodes } = uses;
  return {
    source,
    outputs,
    steps,
    evaluate: (values) => {
      const cost: Cost = { values: 0, characters: 0 };
      try {
        const named = withNothing(values, { input, outputs, steps });
        const asked = { input: celValue(named.input, cost), outputs: celValue(named.outputs, cost), steps: celValue(named.steps, cost) };
        if (isTooMuch(cost, { loops, nodes })) return { problem: "there is too much to look through" };
        const answer: unknown = parsed(asked);
        if (typeof answer !== "boolean")
          return { problem: `it came to ${answer === null ? "null" : `a ${typeOf(answer)}`}, not to true or false` };
        return { holds: answer };
      } catch (error) {
        return { problem: firstLine(error) };
      }
    },
  };
}

/** Nothing but what is named is handed on; keys nobody has written are null, and steps that have not begun are waiting. */
function withNothing(
  { input, outputs, steps }: ConditionValues,
  named: Pick<ConditionUses, "input" | "outputs" | "steps">,
): Record<string, unknown> {
  return {
    input:
      named.input === "all"
        ? input
        : Object.fromEntries(named.input.flatMap((name) => (Object.hasOwn(input, name) ? [[name, input[name]]] : []))),
    outputs:
      named.outputs === "all"
        ? outputs
        : Object.fromEntries(named.outputs.map((key) => [key, (Object.hasOwn(outputs, key) ? outputs[key] : null) ?? null])),
    steps: Object.fromEntries(
      (named.steps === "all" ? Object.keys(steps) : named.steps).map((id) => [
        id,
        { ...NOT_BEGUN, ...(Object.hasOwn(steps, id) ? steps[id] : {}) },
      ]),
    ),
  };
}

function problemOf(error: unknown): ConditionProblem {
  const range = (error as { readonly range?: { readonly start?: unknown } } | undefined)?.range;
  const problem = firstLine(error).replace(/^Unknown variable: .*$/, "$&; a condition knows input, outputs and steps");
  return { problem, offset: typeof range?.start === "number" ? range.start : null };
}

/** What follows quotes the source, with lines of its own. */
function firstLine(error: unknown): string {
  return messageOf(error).split("\n", 1)[0] as string;
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "list";
  if (typeof value === "bigint") return "number";
  return typeof value === "object" ? "map" : typeof value;
}
