import type { ModelCall } from "../kernel/model.ts";
import type { Step } from "../records/journal/steps.ts";

/** The same call this often in a row: the model is told, and it is not made. */
const TOLD_AFTER = 3;
/** This often, and the turn ends. */
const STOPPED_AFTER = 6;

/** How often the turn has made exactly this call in its answers up to the newest, without another answer in between. */
export function repetitionOf(call: ModelCall, steps: readonly Step[]): "fine" | "told" | "stopped" {
  let times = 0;
  for (const step of steps.toReversed()) {
    if (step.kind !== "response") continue;
    if (!step.response.calls.some(({ tool, args }) => tool === call.tool && args === call.args)) break;
    times++;
  }
  return times >= STOPPED_AFTER ? "stopped" : times > TOLD_AFTER ? "told" : "fine";
}
