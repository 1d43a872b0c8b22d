import type { Workflow } from "../../contract/workflows.ts";
import { errorAt, type Finding, warningAt } from "../../settings/config-problem.ts";
import type { Conditions } from "./condition.ts";
import { conditionProblems } from "./condition-problems.ts";
import { contractProblems } from "./contract-problems.ts";
import { keyProblems } from "./key-problems.ts";
import { needsProblems } from "./needs-problems.ts";
import { stepOrder } from "./step-order.ts";
import { type Suggest, suggestions } from "./suggest.ts";
import { templateProblems } from "./templates.ts";

export interface AroundWorkflow {
  /** Every agent there is; absent: nobody knows, and none is called unknown. */
  readonly agents?: Iterable<string>;
  /** Null: conditions are not looked at. */
  readonly conditions: Conditions | null;
}

/**
 * Everything that can be said against a workflow before anything runs. What is written in the order of steps (who writes before whom) is looked
 * at once that order makes sense.
 *
 * Keys: whoever reads a key (`reads`, `foreach`, `outputs.x` in a `when`) must need, over however many steps, somebody who writes it. Inputs are
 * no keys: they are reached by templates and conditions. In a persistent `pool` a key may be there already, others write too, and the config says
 * what holds for its keys: what would be an error is a warning then. Two that may run at the same time, or the items of one `foreach`, cannot both write a key with the policy
 * `reject`; two steps of which one has exactly the other's `when` negated never run both.
 */
export function workflowProblems(definition: Workflow, { agents, conditions }: AroundWorkflow): Finding[] {
  const known = agents === undefined ? null : new Set(agents);
  const suggest = suggestions();
  const found = [
    ...needsProblems(definition, suggest),
    ...definition.steps.flatMap((step, index) => stepProblems(definition, step, index, { known, suggest })),
    ...idempotencyProblems(definition),
    ...unusedKeys(definition, suggest),
    ...contractProblems(definition),
  ];
  const order = stepOrder(definition);
  if (order === null) return found;
  return [...found, ...keyProblems(definition, order, suggest), ...conditionProblems(definition, order, conditions, suggest)];
}

function stepProblems(
  definition: Workflow,
  step: Workflow["steps"][number],
  index: number,
  { known, suggest }: { readonly known: ReadonlySet<string> | null; readonly suggest: Suggest },
): Finding[] {
  const at = ["steps", index];
  const found: Finding[] = templateProblems(step.goal, step.foreach !== undefined).map(({ problem }) =>
    errorAt([...at, "goal"], "workflow.bad_template", problem, "Name an input or the item; other texts in double braces go into an input."),
  );
  if (known !== null && step.agent !== undefined && !known.has(step.agent)) {
    const { meant, words } = suggest(step.agent, known);
    const fix = meant ? `Write ${meant}.` : "Name an agent of the config, or none.";
    found.push(errorAt([...at, "agent"], "workflow.unknown_agent", `there is no agent ${step.agent}${words}`, fix));
  }
  if (step.max_parallel !== undefined && step.foreach === undefined)
    found.push(
      errorAt(
        [...at, "max_parallel"],
        "workflow.no_foreach",
        "`max_parallel` is for the items of a `foreach`, and there is none",
        "Remove it, or add foreach: <a key that holds a list>.",
        "key",
      ),
    );
  if (!definition.shared_context)
    for (const part of ["reads", "writes", "foreach"] as const)
      if ((step[part]?.length ?? 0) > 0)
        found.push(
          errorAt(
            [...at, part],
            "workflow.no_memory",
            `\`${part}\` needs the shared memory, and \`shared_context\` is false`,
            "Remove it, or remove shared_context: false.",
            "key",
          ),
        );
  return found;
}

/** Two runs are the same by what they were given: nothing else is known when the key is looked at. */
function idempotencyProblems({ idempotency_key: template }: Workflow): Finding[] {
  return templateProblems(template ?? "", false).map(({ problem }) =>
    errorAt(["idempotency_key"], "workflow.bad_template", problem, "Name an input."),
  );
}

function unusedKeys({ keys, steps, outputs }: Workflow, suggest: Suggest): Finding[] {
  const used = new Set([...outputs, ...steps.flatMap(({ reads, writes, foreach }) => [...reads, ...writes, foreach])]);
  const undeclared = [...used].filter((name): name is string => name !== undefined && !Object.hasOwn(keys, name));
  return Object.keys(keys).flatMap((key) => {
    if (used.has(key)) return [];
    const message = `no step reads or writes ${key}${suggest(key, undeclared).words}`;
    return [warningAt(["keys", key], "workflow.unused_key", message, "Remove it, or correct its name.", "key")];
  });
}
