import type { EventType } from "../../contract/events.ts";
import { Failure } from "../../kernel/failure.ts";
import type { KnownWorkflow } from "../../records/workflows/known-workflows.ts";
import { holdWorkflow, type WorkflowStanding } from "../../records/workflows/workflow-run-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";

/** A run that this transaction holds: what was fixed when it was started, and how far it is by now. Whoever changes it writes it down in the end. */
export interface GoingWorkflow {
  readonly known: KnownWorkflow;
  standing: WorkflowStanding;
  /** Who or what has set it going: the actor of its events. */
  readonly by: string;
  /** The event that all of it follows from. */
  causedBy: number | null;
}

/** Undefined: there is no such run. */
export async function holdGoing(
  parts: TaskParts,
  tx: Tx,
  id: string,
  by: string,
  causedBy: number | null,
): Promise<GoingWorkflow | undefined> {
  const standing = await holdWorkflow(parts.store, tx, id);
  return standing && { known: await parts.workflows.of(tx, id), standing, by, causedBy };
}

export async function holdExisting(parts: TaskParts, tx: Tx, id: string, by: string): Promise<GoingWorkflow> {
  const going = await holdGoing(parts, tx, id, by, null);
  if (!going) throw new Failure("request.not_found", `there is no run "${id}" of a workflow`);
  return going;
}

/** By so much more or less. */
export function count(going: GoingWorkflow, change: { readonly open?: number; readonly active?: number; readonly failed?: number }): void {
  const { standing } = going;
  going.standing = {
    ...standing,
    openSteps: standing.openSteps + (change.open ?? 0),
    activeSteps: standing.activeSteps + (change.active ?? 0),
    failedSteps: standing.failedSteps + (change.failed ?? 0),
  };
}

export async function tell(
  parts: TaskParts,
  tx: Tx,
  { known, by, causedBy }: GoingWorkflow,
  type: EventType,
  data: object,
): Promise<number> {
  const [seq] = await parts.store.ledger.append(tx, { type, actor: by, subject: ["workflow", known.id], causedBy, data });
  return seq as number;
}
