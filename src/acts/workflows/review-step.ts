import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";

export interface StepVerdict {
  readonly workflow: string;
  readonly step: string;
  readonly verdict: "approve" | "reject";
  /** Who says so. */
  readonly by: string;
  readonly note: string | null;
}

/** A person's word about a step that waits for it. */
export async function reviewStepIn(_parts: TaskParts, _tx: Tx, _verdict: StepVerdict): Promise<void> {
  throw new Failure("internal.bug", "not written yet");
}
