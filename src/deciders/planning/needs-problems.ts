import type { Workflow } from "../../contract/workflows.ts";
import { didYouMean, nearest } from "../../kernel/nearest.ts";
import { errorAt, type Finding } from "../../settings/config-problem.ts";

/** Steps that stand twice, needs that name nobody, and circles. */
export function needsProblems({ steps }: Workflow): Finding[] {
  const first = new Map<string, number>();
  const found: Finding[] = [];
  for (const [index, { id }] of steps.entries()) {
    if (first.has(id))
      found.push(errorAt(["steps", index, "id"], "workflow.duplicate_step", `the step ${id} stands here twice`, "Give it another id."));
    else first.set(id, index);
  }
  for (const [index, { id, needs }] of steps.entries())
    for (const [place, need] of needs.entries()) {
      if (first.has(need)) continue;
      const others = [...first.keys()].filter((other) => other !== id);
      const meant = nearest(need, others);
      const message = `there is no step ${need}${didYouMean(need, others)}`;
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
  const visit = (index: number): void => {
    if (done.has(index)) return;
    path.push(index);
    for (const [place, need] of (steps[index]?.needs ?? []).entries()) {
      const next = places.get(need);
      if (next === undefined) continue;
      const from = path.indexOf(next);
      if (from >= 0) found.push(circle(steps, path.slice(from), [index, place]));
      else visit(next);
    }
    path.pop();
    done.add(index);
  };
  for (const index of steps.keys()) visit(index);
  return found;
}

function circle(steps: Workflow["steps"], round: readonly number[], [index, place]: readonly [number, number]): Finding {
  const least = round.indexOf(Math.min(...round));
  const ids = [...round.slice(least), ...round.slice(0, least)].map((each) => steps[each]?.id);
  const message =
    ids.length === 1 ? `the step ${ids[0]} needs itself` : `steps need each other in a circle: ${[...ids, ids[0]].join(" needs ")}`;
  return errorAt(["steps", index, "needs", place], "workflow.cycle", message, "Remove one of these needs.");
}
