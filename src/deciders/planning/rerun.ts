import { isStepOver, type StepState } from "../../contract/workflows.ts";
import { Failure } from "../../kernel/failure.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import type { CompiledWorkflow } from "./compile.ts";
import { restsOn } from "./plan.ts";

export interface StepsAgain {
  /** Taken over as they are: completed or skipped, and resting on nothing that runs again. Items of a foreach by their own ids. */
  readonly reused: readonly string[];
  readonly again: readonly string[];
}

/**
 * What becomes of a run's steps when it goes back to `from`: these run again, and whatever rests on them; so does what was not done. A foreach
 * that is named by items alone (`audit[3]`) keeps its other items. Throws `workflow.invalid` for a step that there is not.
 */
export function rerunPlan(workflow: CompiledWorkflow, states: ReadonlyMap<string, StepState>, from: Iterable<string>): StepsAgain {
  const named = [...from];
  const whole = new Set(named.filter((id) => workflow.steps.has(id)));
  const items = named.filter((id) => !whole.has(id));
  for (const id of items)
    if (!workflow.steps.get(stepOfItem(id))?.step.foreach || !states.has(id))
      throw new Failure("workflow.invalid", `there is no step ${id}${didYouMean(id, workflow.order)}`);
  const partly = new Set(items.map(stepOfItem));
  const undone = workflow.order.filter((id) => !isDone(states.get(id)));
  const again = new Set([...whole, ...undone, ...partly, ...restsOn(workflow, [...whole, ...undone, ...partly])]);
  const resting = new Set([...whole, ...restsOn(workflow, [...whole, ...undone, ...partly])]);
  const kept = [...states.keys()].filter((id) => {
    const step = stepOfItem(id);
    return step !== id && again.has(step) && partly.has(step) && !resting.has(step) && isDone(states.get(id)) && !items.includes(id);
  });
  return {
    reused: [...workflow.order.filter((id) => !again.has(id)), ...kept],
    again: [...workflow.order.filter((id) => again.has(id)), ...new Set(items.filter((id) => !resting.has(stepOfItem(id))))],
  };
}

/** `audit[3]` → `audit`; ids of steps have no brackets. */
export function stepOfItem(id: string): string {
  return id.replace(/\[\d+\]$/, "");
}

function isDone(state: StepState | undefined): boolean {
  return state !== undefined && isStepOver(state) && (state === "completed" || state === "skipped");
}
