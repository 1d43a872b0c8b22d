import type { ModelCall } from "../kernel/model.ts";
import type { Step } from "../records/journal/steps.ts";

/** The same call this often in a row: the model is told, and it is not made. */
const TOLD_AFTER = 3;
/** All calls of an answer this often, and the turn ends: one that does other things beside goes on. */
const STOPPED_AFTER = 6;

/** Whether the model goes round in circles with this call of its newest answer. */
export function repetitionOf(call: ModelCall, steps: readonly Step[]): "fine" | "told" | "stopped" {
  if (timesOf(call, steps) <= TOLD_AFTER) return "fine";
  const newest = steps.findLast((step) => step.kind === "response");
  return newest?.response.calls.every((each) => timesOf(each, steps) >= STOPPED_AFTER) ? "stopped" : "told";
}

/** How often the turn has made exactly this call, without another answer or somebody's words in between. */
function timesOf(call: ModelCall, steps: readonly Step[]): number {
  let times = 0;
  for (const step of steps.toReversed()) {
    if (step.kind === "compacted") continue;
    if (step.kind === "steered" || !step.response.calls.some(({ tool, args }) => tool === call.tool && args === call.args)) break;
    times++;
  }
  return times;
}
