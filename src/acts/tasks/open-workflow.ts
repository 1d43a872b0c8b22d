import type { Workflow } from "../../contract/workflows.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import type { Label } from "../../kernel/label.ts";
import { alsoWait } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { startWorkflowIn } from "../workflows/start-workflow.ts";
import { type Opened, type OpeningTurn, tellRefusalIn } from "./open-task.ts";
import { refusalOf } from "./spawn-limits.ts";
import { holdAbove } from "./task-above.ts";
import type { TaskParts } from "./task-parts.ts";

export interface WorkflowToOpen {
  readonly definition: Workflow;
  /** Whose turn it is, and whose one-off children do the steps that name no agent. */
  readonly agent: string;
  readonly parent: OpeningTurn;
  /** What no step may go beyond. */
  readonly granted: Grant;
  readonly labels: readonly Label[];
  readonly causedBy: number | null;
}

/** A workflow below a turn: one open task of it, under the same limits as any other. The workflow was compiled before the transaction. */
export async function openWorkflowIn(parts: TaskParts, tx: Tx, workflow: WorkflowToOpen): Promise<Opened> {
  const { definition, agent, parent, granted, labels, causedBy } = workflow;
  const above = await holdAbove(parts, tx, parent.run);
  const refused = await refusalOf(parts, tx, above, [{ kind: "child", agent }]);
  if (refused) {
    await tellRefusalIn(parts, tx, { kind: "workflow", agent, from: agent, parent, causedBy }, refused);
    return { refused };
  }
  const waiter = parent.waiter ?? null;
  const id = await startWorkflowIn(parts, tx, {
    definition,
    input: {},
    from: agent,
    granted,
    callerAgent: agent,
    labels,
    causedBy,
    parent: {
      task: above.task,
      run: parent.run,
      depth: above.depth + 1,
      maxDepth: above.maxDepth,
      chain: above.chain,
      root: above.root ?? parent.run,
      waiter,
    },
  });
  // One by the same key may have been started by another turn.
  if (waiter !== null) await alsoWait(parts.store, tx, id, waiter);
  return { id, isNew: true };
}
