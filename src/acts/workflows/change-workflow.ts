import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";

/** Ends everything of it that is open. Answers the turns that were stopped: whoever runs them here is to be told after the commit. */
export async function cancelWorkflowIn(_parts: TaskParts, _tx: Tx, _id: string, _by: string): Promise<string[]> {
  throw new Failure("internal.bug", "not written yet");
}
export async function pauseWorkflowIn(_parts: TaskParts, _tx: Tx, _id: string, _by: string): Promise<void> {
  throw new Failure("internal.bug", "not written yet");
}
/** A paused run goes on; of one that failed or was cancelled, what was not done is tried again. */
export async function resumeWorkflowIn(_parts: TaskParts, _tx: Tx, _id: string, _by: string): Promise<void> {
  throw new Failure("internal.bug", "not written yet");
}
