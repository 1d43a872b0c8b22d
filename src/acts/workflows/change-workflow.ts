import { isWorkflowOver, type StepState } from "../../contract/workflows.ts";
import { countItems, restsOn } from "../../deciders/planning/plan.ts";
import { rerunPlan, stepOfItem } from "../../deciders/planning/rerun.ts";
import { Failure } from "../../kernel/failure.ts";
import { readTask, reopenTask } from "../../records/tasks/task-rows.ts";
import { reopenWorkflowRun } from "../../records/workflows/workflow-run-rows.ts";
import { cancelOpen, readSteps, removeItems, resetSteps, type StoredStep } from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { closeTaskIn } from "../tasks/close-task.ts";
import { endTreeIn } from "../tasks/end-tree.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { advanceIn, endStepIn, isLost } from "./advance.ts";
import { endWorkflowIn, outputsOf, settleStandingIn } from "./end-workflow.ts";
import { count, type GoingWorkflow, holdExisting, tell } from "./going-workflow.ts";
import { startItemsIn } from "./start-items.ts";
import { takeBackIn } from "./start-step.ts";

/**
 * Ends everything of it that is open, and whatever its steps have delegated. Answers the turns that were stopped: whoever runs them here is to be
 * told after the commit. Refused for one that is over.
 */
export async function cancelWorkflowIn(parts: TaskParts, tx: Tx, id: string, by: string): Promise<string[]> {
  const { stopped, before } = await cancelOpenIn(parts, tx, id, by);
  if (isWorkflowOver(before.standing.status)) throw over(before);
  return stopped;
}

/** The same of those below something that ends: one of them may have ended another by then, or itself. */
export async function cancelWorkflowsIn(parts: TaskParts, tx: Tx, ids: Iterable<string>, by: string): Promise<string[]> {
  const stopped: string[] = [];
  for (const id of ids) stopped.push(...(await cancelOpenIn(parts, tx, id, by)).stopped);
  return stopped;
}

async function cancelOpenIn(
  parts: TaskParts,
  tx: Tx,
  id: string,
  by: string,
): Promise<{ readonly stopped: string[]; readonly before: GoingWorkflow }> {
  const error = { code: "run.stopped", message: `cancelled by ${by}` };
  // The work rows first, as a turn does it that commits: in the other order the two could wait for each other.
  const below = await endTreeIn(parts, tx, { tasks: [id] }, { error, by, causedBy: null });
  const before = await holdExisting(parts, tx, id, by);
  if (isWorkflowOver(before.standing.status)) return { stopped: [...below.runs], before };
  // What was begun until the run was held.
  const late = await endTreeIn(parts, tx, { tasks: [id] }, { error, by, causedBy: null });
  const inner = new Set([...below.workflows, ...late.workflows].filter((one) => one !== id));
  const stopped = [...below.runs, ...late.runs, ...(await cancelWorkflowsIn(parts, tx, inner, by))];
  const ended = await cancelOpen(tx, id, error);
  const whole = ended.filter(({ itemIndex }) => itemIndex === null).length;
  const going = { ...before, standing: { ...before.standing, openSteps: before.standing.openSteps - whole, activeSteps: 0 } };
  for (const step of ended) await closeStepTask(parts, tx, step, error);
  await endWorkflowIn(parts, tx, going, { status: "cancelled", outputs: await outputsOf(parts, tx, going), error });
  return { stopped, before };
}

/** The run tells of all its steps at once; that the task of each is over is a record like any other's. */
async function closeStepTask(parts: TaskParts, tx: Tx, { task: id }: StoredStep, error: { code: string; message: string }): Promise<void> {
  const task = id === null ? undefined : await readTask(tx, id);
  if (task) await closeTaskIn(parts, tx, task, { status: "cancelled", result: null, error, causedBy: null });
}

/** Nothing new begins; what runs may end. */
export async function pauseWorkflowIn(parts: TaskParts, tx: Tx, id: string, by: string): Promise<void> {
  const going = await holdExisting(parts, tx, id, by);
  if (isWorkflowOver(going.standing.status)) throw over(going);
  if (going.standing.paused) return;
  going.standing = { ...going.standing, paused: true };
  await tell(parts, tx, going, "workflow.paused", {});
  await settleStandingIn(parts, tx, going);
}

/** A paused run goes on; of one that failed or was cancelled, what was not done is tried again. Refused for one that was completed. */
export async function resumeWorkflowIn(parts: TaskParts, tx: Tx, id: string, by: string): Promise<void> {
  const going = await holdExisting(parts, tx, id, by);
  const { status, paused } = going.standing;
  if (status === "completed") throw over(going);
  if (isWorkflowOver(status)) return tryAgainIn(parts, tx, going);
  if (!paused) return;
  going.standing = { ...going.standing, paused: false };
  going.causedBy = await tell(parts, tx, going, "workflow.resumed", {});
  await goOnIn(parts, tx, going, await readSteps(tx, id));
}

async function tryAgainIn(parts: TaskParts, tx: Tx, going: GoingWorkflow): Promise<void> {
  const { id, compiled, pool, definition } = going.known;
  if (pool !== null && definition.pool === undefined && !(await parts.pools.reopenIn(tx, going.by, pool)))
    throw new Failure("workflow.over", `what the steps of ${id} shared is no longer kept`);
  const steps = await readSteps(tx, id);
  const { again, reused } = rerunPlan(compiled, new Map(steps.map(({ step, state }) => [step, state])), []);
  const whole = again.filter((step) => compiled.steps.has(step));
  // Of a `foreach`: items that are done stay so, as long as nothing that it rests on is done again.
  const items = [...again, ...reused].filter((step) => !compiled.steps.has(step));
  const kept = new Set(items.map(stepOfItem));
  const begunAnew = new Set(again);
  await takeBackIn(
    parts,
    tx,
    going,
    steps.filter(({ step, run }) => run !== null && begunAnew.has(step)),
  );
  for (const step of whole) if (!kept.has(step)) await removeItems(tx, id, step);
  await resetSteps(
    tx,
    id,
    again.filter((step) => !kept.has(step)),
  );
  going.standing = { ...going.standing, status: "running", paused: false, openSteps: whole.length, activeSteps: 0, failedSteps: 0 };
  await reopenWorkflowRun(tx, going.standing);
  if (!(await reopenTask(tx, id))) throw new Failure("workflow.over", `the task of ${id} is no longer kept`);
  going.causedBy = await tell(parts, tx, going, "workflow.resumed", { again });
  await goOnIn(parts, tx, going, await readSteps(tx, id), kept);
}

/** Everything that may begin, begins. `kept`: those of a `foreach` that go on with the items that are not done. */
export async function goOnIn(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  steps: readonly StoredStep[],
  kept: ReadonlySet<string> = new Set(),
): Promise<void> {
  const { compiled } = going.known;
  const states = new Map<string, StepState>(steps.map(({ step, state }) => [step, state]));
  for (const { step, items, state } of steps) {
    if (items === null || !(kept.has(step) || (state === "running" && items.waiting > 0))) continue;
    const own = steps.filter((one) => one.ofStep === step && one.itemIndex !== null).map((one) => one.state);
    const counts = kept.has(step) ? { ...items, ...countItems(own) } : items;
    if (kept.has(step)) count(going, { active: 1 });
    const outcome = await startItemsIn(parts, tx, going, step, counts);
    states.set(step, "running");
    if (outcome === null) continue;
    await endStepIn(parts, tx, going, step, outcome);
    count(going, { active: -1 });
    states.set(step, outcome.state);
    if (isLost(outcome.state)) for (const one of restsOn(compiled, [step])) states.set(one, "cancelled");
  }
  // Whatever was approved while the run was paused.
  const approved = new Set(steps.flatMap((step) => (step.state === "review" && step.approved ? [step.step] : [])));
  await advanceIn(parts, tx, going, compiled.order, { states, approved });
  await settleStandingIn(parts, tx, going);
}

function over({ standing }: GoingWorkflow): Failure {
  return new Failure("workflow.over", `the workflow ${standing.id} is ${standing.status} already`, {
    details: { status: standing.status },
  });
}
