import type { Workflow } from "../../contract/workflows.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";

/** The turn whose call starts a workflow. */
export interface WorkflowParent {
  /** The task that it is a turn of; null: of a conversation. */
  readonly task: string | null;
  readonly run: string;
  /** Of the workflow: one below that of the turn. */
  readonly depth: number;
  readonly maxDepth: number;
  /** The agents from the root down to the one that calls. */
  readonly chain: readonly string[];
  readonly root: string;
  /** Its row in the work queue, where it waits for the end. */
  readonly waiter: number | null;
}

export interface WorkflowToStart {
  readonly definition: Workflow;
  readonly input: Readonly<Record<string, unknown>>;
  /** Who starts it: a bare name. */
  readonly from: string;
  /** What no step may go beyond; null: the rights of its agent. */
  readonly granted: Grant | null;
  /** Whose one-off children do the steps that name no agent; null: the default agent does. */
  readonly callerAgent: string | null;
  readonly parent?: WorkflowParent | undefined;
  /** What whoever starts it has seen: every step begins with it. */
  readonly labels?: readonly Label[];
  /** The same key by the same one is the same run. */
  readonly idempotency?: string | undefined;
  /** The event that this follows from. */
  readonly causedBy?: number | null;
}

/** Starts a run: its task, its pool, its steps, and the turns of those that may begin. Answers its id. */
export async function startWorkflowIn(_parts: TaskParts, _tx: Tx, _workflow: WorkflowToStart): Promise<string> {
  throw new Failure("internal.bug", "not written yet");
}
