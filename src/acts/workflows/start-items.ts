import { type ItemCounts, planItems } from "../../deciders/planning/plan.ts";
import { endStep, type ItemsOfStep, type StepError, setItems, waitingItems } from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { type GoingWorkflow, tell } from "./going-workflow.ts";
import { startStepIn } from "./start-step.ts";

export interface ItemsOutcome {
  readonly state: "completed" | "failed" | "cancelled";
  readonly error: StepError | null;
}

/** Starts as many items of a `foreach` as may run. Answers what has become of the step; null: items are open. */
export async function startItemsIn(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  step: string,
  before: ItemsOfStep,
): Promise<ItemsOutcome | null> {
  const { known, standing } = going;
  const compiled = known.compiled.steps.get(step);
  if (!compiled) return null;
  let counts: ItemsOfStep = before;
  const list = { key: compiled.step.foreach as string, version: before.version, external: before.external };
  for (;;) {
    const { start, outcome } = planItems(compiled, counts);
    if (outcome !== null) {
      await setItems(tx, known.id, step, counts);
      return { state: outcome, error: outcome === "completed" ? null : await errorOfItems(tx, going, step, counts) };
    }
    if (start === 0 || standing.paused) break;
    const rows = await waitingItems(tx, known.id, step, start);
    if (rows.length === 0) break;
    for (const row of rows) {
      const error = await startStepIn(parts, tx, going, { row, list });
      counts = moved(counts, "waiting", error ? "failed" : "active");
      if (!error) continue;
      await endStep(tx, known.id, row.step, { state: "failed", error });
      await tell(parts, tx, going, "step.failed", { step: row.step, error });
    }
  }
  await setItems(tx, known.id, step, counts);
  return null;
}

export function moved(counts: ItemsOfStep, from: keyof ItemCounts, to: keyof ItemCounts): ItemsOfStep {
  return { ...counts, [from]: counts[from] - 1, [to]: counts[to] + 1 };
}

/** That of the first item that failed. */
async function errorOfItems(tx: Tx, { known }: GoingWorkflow, step: string, counts: ItemCounts): Promise<StepError> {
  const row = await tx.get<{ step: string; error: string | null }>`select step, error from workflow_steps
    where workflow_id = ${known.id} and of_step = ${step} and item_index is not null and state in ('failed', 'cancelled')
    order by case state when 'failed' then 0 else 1 end, item_index limit 1`;
  const first = row?.error ? (JSON.parse(row.error) as StepError) : { code: "workflow.step_failed", message: "no reason was given" };
  const many = counts.failed + counts.cancelled;
  return { code: first.code, message: `${many} item${many === 1 ? "" : "s"} did not succeed; ${row?.step}: ${first.message}` };
}
