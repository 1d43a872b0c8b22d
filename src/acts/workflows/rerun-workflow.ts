import { isWorkflowOver, type RerunPlan } from "../../contract/workflows.ts";
import { rerunPlan, stepOfItem } from "../../deciders/planning/rerun.ts";
import { Failure } from "../../kernel/failure.ts";
import { runsOfSteps, usageOfRuns, type WorldChange, worldChangesOf } from "../../records/workflows/past-turns.ts";
import { addSteps, readSteps, reuseSteps, type StoredStep } from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { goOnIn } from "./change-workflow.ts";
import { type GoingWorkflow, holdExisting } from "./going-workflow.ts";
import { beginIn, openRunIn } from "./start-workflow.ts";

export interface WorkflowToRerun {
  readonly id: string;
  /** Steps that run again, with all that rest on them. */
  readonly from: readonly string[];
  /** Only tells. */
  readonly dryRun: boolean;
  readonly by: string;
}

/**
 * A new run that takes over what is done, and does the rest again: steps as they ended, entries with their versions, authors and labels. The run
 * that it goes back to stays as it is. Refused while that one goes on: what it does next would be in neither.
 */
export async function rerunWorkflowIn(parts: TaskParts, tx: Tx, { id, from, dryRun, by }: WorkflowToRerun): Promise<RerunPlan> {
  const before = await holdExisting(parts, tx, id, by);
  if (!dryRun && !isWorkflowOver(before.standing.status))
    throw new Failure("workflow.running", `the workflow ${id} is ${before.standing.status}; cancel it, or wait for its end`);
  const steps = await readSteps(tx, id);
  const { reused, again } = await whatRunsAgain(tx, before, steps, from);
  const runs = await runsOfSteps(
    tx,
    steps.filter(({ step, ofStep }) => isAgain(again, step, ofStep) && !reused.includes(step)),
  );
  const plan: RerunPlan = {
    id: null,
    reused: [...reused],
    again: [...again],
    effects: (await worldChangesOf(tx, runs)).map(told),
    estimate: await usageOfRuns(tx, runs),
  };
  if (dryRun) return plan;
  return { ...plan, id: await startAgain(parts, tx, before, steps, plan, from, [...runs.keys()]) };
}

/** What rests on the named steps; and whoever has written upon what they wrote, for it cannot be had without. */
async function whatRunsAgain(
  tx: Tx,
  { known }: GoingWorkflow,
  steps: readonly StoredStep[],
  from: readonly string[],
): Promise<{ readonly reused: readonly string[]; readonly again: readonly string[] }> {
  const states = new Map(steps.map(({ step, state }) => [step, state]));
  let wanted = [...from];
  for (;;) {
    const planned = rerunPlan(known.compiled, states, wanted);
    if (known.pool === null || known.definition.pool !== undefined) return planned;
    const kept = steps.filter(({ step, ofStep }) => !isAgain(planned.again, step, ofStep) || planned.reused.includes(step));
    const redone = steps.filter((step) => !kept.includes(step));
    const upon = await writtenUpon(tx, known.pool, [...(await runsOfSteps(tx, redone)).keys()], await runsOfSteps(tx, kept));
    const more = upon.filter((step) => !wanted.includes(step));
    if (more.length === 0) return planned;
    wanted = [...wanted, ...more];
  }
}

/** Steps among `kept` that wrote a later version of a key than one of these turns did. */
async function writtenUpon(tx: Tx, pool: string, redone: readonly string[], kept: ReadonlyMap<string, string>): Promise<string[]> {
  const rows = await tx.all<{ key: string; version: number; run: string }>`select key, version, run from pool_versions
    where pool = ${pool} and retracted_seq is null order by key, version`;
  const again = new Set(redone);
  const found = new Set<string>();
  let tainted: string | null = null;
  for (const { key, run } of rows) {
    if (again.has(run)) tainted = key;
    else if (tainted === key && kept.has(run)) found.add(kept.get(run) as string);
  }
  return [...found];
}

async function startAgain(
  parts: TaskParts,
  tx: Tx,
  { known, by }: GoingWorkflow,
  steps: readonly StoredStep[],
  { reused, again }: RerunPlan,
  from: readonly string[],
  redone: readonly string[],
): Promise<string> {
  const { definition, input, callerAgent, granted, lineage, pool } = known;
  const workflow = { definition, input, from: by, granted, callerAgent, above: lineage, labels: lineage.labels ?? [] };
  const { id } = await openRunIn(parts, tx, workflow, { id: known.id, from });
  // Items of a `foreach` come along with a step that is reused as a whole, and by themselves with one of which only some are done again.
  const taken = steps.filter(({ step, ofStep }) => reused.includes(step) || !isAgain(again, step, ofStep)).map(({ step }) => step);
  const partly = new Set(taken.map(stepOfItem).filter((step) => again.includes(step)));
  await reuseSteps(tx, id, known.id, [...taken, ...partly]);
  const rest = steps.filter(({ step, ofStep, itemIndex }) => itemIndex !== null && partly.has(ofStep) && !taken.includes(step));
  await addSteps(
    tx,
    id,
    rest.map(({ step, ofStep, itemIndex, item }) => ({ step, ofStep, itemIndex, item, state: "waiting" })),
  );
  if (pool !== null && definition.pool === undefined) await parts.pools.takeOverIn(tx, by, pool, `run:${id}`, redone);
  const going = await beginIn(parts, tx, id, workflow, { rerunOf: known.id, reused: reused.length });
  going.standing = { ...going.standing, openSteps: again.filter((step) => stepOfItem(step) === step).length };
  await goOnIn(parts, tx, going, await readSteps(tx, id), partly);
  return id;
}

/** `again` names steps, and items where only some of a `foreach` are done again. */
function isAgain(again: readonly string[], step: string, ofStep: string): boolean {
  return again.includes(step) || again.includes(ofStep);
}

function told({ step, tool, effect, args }: WorldChange): RerunPlan["effects"][number] {
  return { step, tool, effect, args };
}
