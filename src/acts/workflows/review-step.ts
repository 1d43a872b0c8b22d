import { isWorkflowOver } from "../../contract/workflows.ts";
import { Failure } from "../../kernel/failure.ts";
import { noteReview, readStep } from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { advanceIn, endStepIn } from "./advance.ts";
import { settleStandingIn } from "./end-workflow.ts";
import { holdExisting, tell } from "./going-workflow.ts";

export interface StepVerdict {
  readonly workflow: string;
  readonly step: string;
  readonly verdict: "approve" | "reject";
  /** Who says so. */
  readonly by: string;
  readonly note: string | null;
}

/** A person's word about a step that waits for it. */
export async function reviewStepIn(parts: TaskParts, tx: Tx, { workflow, step, verdict, by, note }: StepVerdict): Promise<void> {
  const going = await holdExisting(parts, tx, workflow, by);
  const row = await readStep(tx, workflow, step);
  if (!row) throw new Failure("request.not_found", `the workflow ${workflow} has no step "${step}"`);
  if (row.state !== "review" || isWorkflowOver(going.standing.status))
    throw new Failure("workflow.not_waiting", `the step ${step} is ${row.state}`, { details: { status: row.state } });
  await noteReview(tx, workflow, step, { verdict, by, note });
  going.causedBy = await tell(parts, tx, going, "step.reviewed", { step, verdict, ...(note === null ? {} : { note }) });
  if (verdict === "approve") {
    // In a paused run it stays approved, and begins when the run goes on.
    await advanceIn(parts, tx, going, [step], { approved: new Set([step]) });
  } else {
    const message = `rejected by ${by}${note === null ? "" : `: ${note}`}`;
    await endStepIn(parts, tx, going, step, { state: "failed", error: { code: "step.rejected", message } });
  }
  await settleStandingIn(parts, tx, going);
}
