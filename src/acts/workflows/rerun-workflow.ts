import type { RerunPlan } from "../../contract/workflows.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";

export interface WorkflowToRerun {
  readonly id: string;
  /** Steps that run again, with all that rest on them. */
  readonly from: readonly string[];
  /** Only tells. */
  readonly dryRun: boolean;
  readonly by: string;
}

/** A new run that takes over what is done and does the rest again. */
export async function rerunWorkflowIn(_parts: TaskParts, _tx: Tx, _rerun: WorkflowToRerun): Promise<RerunPlan> {
  throw new Failure("internal.bug", "not written yet");
}
