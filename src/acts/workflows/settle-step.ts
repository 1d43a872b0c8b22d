import type { StoredTask } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskRunEnd } from "../tasks/close-task.ts";
import type { TaskParts } from "../tasks/task-parts.ts";

/** A turn of a step has ended. `again`: the step is tried once more, with a new turn; `over`: it has ended with it. */
export async function settleStepIn(_parts: TaskParts, _tx: Tx, _task: StoredTask, _end: TaskRunEnd): Promise<"again" | "over"> {
  return "over";
}
