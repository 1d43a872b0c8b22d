import { readTask, type StoredTask } from "../../records/tasks/task-rows.ts";
import { endWorkflowRun, setStanding, type WorkflowEnd } from "../../records/workflows/workflow-run-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { closeTaskIn } from "../tasks/close-task.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { type GoingWorkflow, tell } from "./going-workflow.ts";
import { valuesOf } from "./values-of.ts";

/** How long what a run's steps have shared is kept after its end. */
const RETENTION_MS = 30 * 86_400_000;
/** Of one output, and of all together, in characters of JSON. */
const OUTPUT_CHARACTERS = 262_144;
const ALL_OUTPUTS_CHARACTERS = 1_048_576;
const PREVIEW_CHARACTERS = 2_000;

/** Writes down how far it is; when nothing is open, it is over. */
export async function settleStandingIn(parts: TaskParts, tx: Tx, going: GoingWorkflow): Promise<void> {
  const { standing } = going;
  if (standing.openSteps > 0) return setStanding(tx, { ...standing, status: standing.activeSteps > 0 ? "running" : "waiting" });
  const outputs = await outputsOf(parts, tx, going);
  if (standing.failedSteps === 0) return endWorkflowIn(parts, tx, going, { status: "completed", outputs, error: null });
  const many = standing.failedSteps === 1 ? "a step" : `${standing.failedSteps} steps`;
  const error = { code: "workflow.step_failed", message: `${many} failed${await namesOfFailed(tx, going)}` };
  return endWorkflowIn(parts, tx, going, { status: "failed", outputs, error });
}

/** Once: nothing of it is open. Its pool takes no more writes, and whoever waits for it goes on. */
export async function endWorkflowIn(parts: TaskParts, tx: Tx, going: GoingWorkflow, end: WorkflowEnd): Promise<void> {
  const { known, standing, by } = going;
  await endWorkflowRun(tx, standing, end);
  const ended = await tell(parts, tx, going, `workflow.${end.status}`, end.error ? { error: end.error } : {});
  if (known.pool !== null && known.definition.pool === undefined) await parts.pools.sealIn(tx, by, known.pool, RETENTION_MS);
  const task = await readTask(tx, known.id);
  const result = end.status === "completed" ? end.outputs : null;
  await closeTaskIn(parts, tx, task as StoredTask, { status: end.status, result, error: end.error, causedBy: ended });
}

/** By key; those that are not there are left out. What is very long is shown in part: all of it stands in the pool. */
export async function outputsOf(parts: TaskParts, tx: Tx, going: GoingWorkflow): Promise<Record<string, unknown>> {
  const { outputs } = going.known.definition;
  const values = await valuesOf(parts, tx, going, outputs);
  let left = ALL_OUTPUTS_CHARACTERS;
  const shown = outputs.flatMap((key): [string, unknown][] => {
    const current = values.get(key);
    if (!current) return [];
    const text = JSON.stringify(current.value);
    const fits = text.length <= Math.min(left, OUTPUT_CHARACTERS);
    const value = fits ? current.value : { preview: text.slice(0, PREVIEW_CHARACTERS).toWellFormed(), characters: text.length, key };
    left -= fits ? text.length : PREVIEW_CHARACTERS;
    return [[key, value]];
  });
  return Object.fromEntries(shown);
}

const NAMED_AT_MOST = 5;
async function namesOfFailed(tx: Tx, { known }: GoingWorkflow): Promise<string> {
  const rows = await tx.all<{ step: string; error: string | null }>`select step, error from workflow_steps
    where workflow_id = ${known.id} and state = 'failed' and item_index is null order by ended_at, step limit ${NAMED_AT_MOST}`;
  const told = rows.map(({ step, error }) => `${step} (${error === null ? "?" : (JSON.parse(error) as { code: string }).code})`);
  return told.length === 0 ? "" : `: ${told.join(", ")}`;
}
