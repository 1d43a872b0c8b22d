import type { StepState } from "../../contract/workflows.ts";
import { Failure } from "../../kernel/failure.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import type { CompiledWorkflow } from "./compile.ts";
import { restsOn } from "./plan.ts";

/** Items of a foreach stand behind the steps, by their own ids (`audit[3]`), and only of a step that runs again without losing all of them. */
export interface StepsAgain {
  /** Taken over as they are: completed or skipped, and resting on nothing that runs again. */
  readonly reused: readonly string[];
  readonly again: readonly string[];
}

/**
 * What becomes of a run's steps when it goes back to `from`: these run again, and whatever rests on them; so does what was not done. A foreach
 * that is named by items alone (`audit[3]`), or runs again only because an item was not done, keeps the items that were.
 * `states`: of every step and item. Throws `workflow.invalid` for a step or item that there is not.
 */
export function rerunPlan(workflow: CompiledWorkflow, states: ReadonlyMap<string, StepState>, from: Iterable<string>): StepsAgain {
  const named = new Set(from);
  for (const id of named)
    if (!workflow.steps.has(id) && !(states.has(id) && workflow.steps.has(stepOfItem(id))))
      throw new Failure("workflow.invalid", `there is no step ${id}${didYouMean(id, workflow.order)}`);
  const isDone = (id: string): boolean => ["completed", "skipped"].includes(states.get(id) ?? "");
  const begun = new Set([...[...named].map(stepOfItem), ...workflow.order.filter((id) => !isDone(id))]);
  const resting = new Set(restsOn(workflow, begun));
  const isAgain = (id: string): boolean => begun.has(id) || resting.has(id);
  const items = [...states.keys()].filter((id) => {
    const step = stepOfItem(id);
    return step !== id && begun.has(step) && !named.has(step) && !resting.has(step);
  });
  const isKept = (item: string): boolean => isDone(item) && !named.has(item);
  return {
    reused: [...workflow.order.filter((id) => !isAgain(id)), ...items.filter(isKept)],
    again: [...workflow.order.filter(isAgain), ...items.filter((item) => !isKept(item))],
  };
}

/** `audit[3]` → `audit`; ids of steps have no brackets. */
export function stepOfItem(id: string): string {
  return id.replace(/\[\d+\]$/, "");
}
