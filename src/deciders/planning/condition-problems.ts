import type { Workflow } from "../../contract/workflows.ts";
import { errorAt, type Finding } from "../../settings/config-problem.ts";
import type { Conditions } from "./condition.ts";
import { type Keys, readProblem, writersOf } from "./key-problems.ts";
import { only, type StepOrder } from "./step-order.ts";
import type { Suggest } from "./suggest.ts";

/** A `when` that cannot be read, or names what is not there or not done when it is asked. */
export function conditionProblems(definition: Workflow, order: StepOrder, conditions: Conditions | null, suggest: Suggest): Finding[] {
  if (conditions === null) return [];
  const keys: Keys = { definition, order, writers: writersOf(definition), suggest };
  return definition.steps.flatMap(({ id, when }, index) => {
    if (when === undefined) return [];
    const path = ["steps", index, "when"];
    const condition = conditions.compile(when);
    if ("problem" in condition) {
      const where = condition.offset === null || condition.offset === 0 ? "" : ` (at character ${condition.offset + 1})`;
      return [
        errorAt(
          path,
          "workflow.bad_condition",
          `${condition.problem}${where}`,
          'Write CEL, such as: outputs.report != null && input.kind == "full".',
        ),
      ];
    }
    const outputs = condition.outputs === "all" ? [] : condition.outputs;
    const steps = condition.steps === "all" ? [] : condition.steps;
    return [
      ...outputs.flatMap((key) => readProblem(keys, { key, index, path })),
      ...steps.flatMap((other) => stepProblem(keys, path, id, index, other)),
    ];
  });
}

function stepProblem({ order, suggest }: Keys, path: Finding["path"], id: string, index: number, other: string): Finding[] {
  const place = order.places.get(other);
  if (place === undefined) {
    const { meant, words } = suggest(other, order.places.keys());
    const fix = meant ? `Write steps.${meant}.` : "Name a step of this workflow.";
    return [errorAt(path, "workflow.unknown_step", `there is no step ${other}${words}`, fix)];
  }
  if ((order.before(index) & only(place)) !== 0n) return [];
  const message =
    place === index ? `${id} asks about itself, before it has begun` : `${id} asks about ${other}, and nothing says that it comes first`;
  return [
    errorAt(
      path,
      "workflow.unordered_condition",
      message,
      place === index ? "Ask about a step before it." : `Add ${other} to the needs of ${id}.`,
    ),
  ];
}
