import type { Workflow } from "../../contract/workflows.ts";
import { errorAt, type Finding } from "../../settings/config-problem.ts";
import type { Suggest } from "./suggest.ts";

/** One that is corrected often takes others with it. */
const MOST_CIRCLES = 10;
const SHOWN = 20;

/** Steps that stand twice, needs that name nobody, and circles. */
export function needsProblems({ steps }: Workflow, suggest: Suggest): Finding[] {
  const first = new Map<string, number>();
  const found: Finding[] = [];
  for (const [index, { id }] of steps.entries()) {
    if (first.has(id))
      found.push(errorAt(["steps", index, "id"], "workflow.duplicate_step", `the step ${id} stands here twice`, "Give it another id."));
    else first.set(id, index);
  }
  for (const [index, { needs }] of steps.entries())
    for (const [place, need] of needs.entries()) {
      if (first.has(need)) continue;
      const { meant, words } = suggest(need, first.keys());
      const message = `there is no step ${need}${words}`;
      const fix = meant ? `Write ${meant}.` : "Name a step of this workflow.";
      found.push(errorAt(["steps", index, "needs", place], "workflow.unknown_step", message, fix));
    }
  return [...found, ...circles(steps, first)];
}

/** Each circle once, from the step of it that stands first in the file. */
function circles(steps: Workflow["steps"], places: ReadonlyMap<string, number>): Finding[] {
  const found: Finding[] = [];
  const done = new Set<number>();
  const path: number[] = [];
  const open = new Map<number, number>();
  const visit = (index: number): void => {
    if (done.has(index) || found.length >= MOST_CIRCLES) return;
    open.set(index, path.push(index) - 1);
    for (const [place, need] of (steps[index]?.needs ?? []).entries()) {
      const next = places.get(need);
      if (next === undefined || found.length >= MOST_CIRCLES) continue;
      const from = open.get(next);
      if (from === undefined) visit(next);
      else found.push(circle(steps, path.slice(from), [index, place]));
    }
    path.pop();
    open.delete(index);
    done.add(index);
  };
  for (const index of steps.keys()) visit(index);
  return found;
}

function circle(steps: Workflow["steps"], round: readonly number[], [index, place]: readonly [number, number]): Finding {
  const least = round.indexOf(Math.min(...round));
  const ids = [...round.slice(least), ...round.slice(0, least)].map((each) => steps[each]?.id);
  const message =
    ids.length === 1
      ? `the step ${ids[0]} needs itself`
      : `steps need each other in a circle: ${[...(ids.length > SHOWN ? [...ids.slice(0, SHOWN), "…"] : ids), ids[0]].join(" needs ")}`;
  return errorAt(["steps", index, "needs", place], "workflow.cycle", message, "Remove one of these needs.");
}
