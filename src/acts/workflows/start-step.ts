import type { WorkflowStep } from "../../contract/workflows.ts";
import { renderTemplate } from "../../deciders/planning/templates.ts";
import { isFailure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import { refuses, standstillIn } from "../../records/agents/standstill.ts";
import { addTask, type StoredTask, setDeadline, setTaskRun, type TaskSpec } from "../../records/tasks/task-rows.ts";
import { type StepError, type StoredStep, startStep } from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { startTaskRunIn } from "../tasks/start-task-run.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { agentIn } from "../turn-mail.ts";
import { type GoingWorkflow, tell } from "./going-workflow.ts";
import { agentOfStep, grantOfStep } from "./step-grant.ts";
import { stepWords } from "./step-words.ts";

/** Of a step, or of one item: what is known of the list that the item comes from. */
export interface StepToStart {
  readonly row: Pick<StoredStep, "step" | "ofStep" | "itemIndex" | "item">;
  readonly list?: { readonly key: string; readonly version: number; readonly external: boolean } | undefined;
}

/** Opens the task of a step and starts its first turn. Answers why it cannot be done at all; null: it has begun. */
export async function startStepIn(parts: TaskParts, tx: Tx, going: GoingWorkflow, { row, list }: StepToStart): Promise<StepError | null> {
  const { known } = going;
  const { current } = parts.agents;
  const step = definitionOf(going, row);
  const agent = agentOfStep(known, step, current);
  if (agent === undefined || !current.agents.has(agent)) return unknownAgent(step, agent);
  const standstill = standstillIn(current, agent);
  if (standstill && refuses(standstill)) return { code: standstill.failure.code, message: standstill.failure.message };
  const goal = goalOf(going, row, step);
  if (typeof goal !== "string") return goal;
  const labels: Label[] = [...new Set<Label>([...(known.lineage.labels ?? []), ...(list?.external ? ["external" as const] : [])])];
  const { lineage, id: workflow, from } = known;
  const task = {
    id: parts.newId(),
    kind: "step" as const,
    agent,
    from,
    goal,
    parent: workflow,
    parentRun: null,
    root: lineage.root,
    depth: lineage.depth,
    maxDepth: Math.min(lineage.maxDepth, current.agents.get(agent)?.subagents.maxDepth ?? 0),
    chain: agent === known.callerAgent ? lineage.chain : [...lineage.chain, agent],
    spec: specOf(going, step, labels),
    workflow,
    step: row.step,
    timeoutMs: step.timeout ?? null,
  };
  const ready = await tell(parts, tx, going, "step.ready", { step: row.step, agent, task: task.id });
  const { run, work } = await startTaskRunIn(parts, tx, task, turnOf(parts, going, step, agent, goal, ready));
  await addTask(tx, { ...task, run, work });
  // What an item is made from is known, whatever becomes of the list meanwhile.
  if (list && known.pool !== null)
    await parts.pools.noteReadsIn(tx, agentIn({ id: run, agent }, [], row.step, known.pool), [{ ...list, pool: known.pool, shown: true }]);
  await startStep(tx, workflow, row.step, { agent, task: task.id, run });
  return null;
}

/** One more turn of the same task. Answers the run. */
export async function startAgainIn(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  row: StepToStart["row"],
  task: StoredTask,
  causedBy: number,
  delayMs: number,
): Promise<string> {
  const step = definitionOf(going, row);
  const agent = task.agent as string;
  await takeBackIn(parts, tx, going, [{ ...row, agent, run: task.run }]);
  if (step.timeout !== undefined) await setDeadline(tx, task.id, delayMs + step.timeout);
  const turn = { ...turnOf(parts, going, step, agent, task.goal, causedBy), delayMs };
  const { run, work } = await startTaskRunIn(parts, tx, { ...task, agent }, turn);
  await setTaskRun(tx, task.id, run, work);
  return run;
}

/** Before they are done again: what the attempts before have added to lists would be added twice. */
export async function takeBackIn(
  { pools }: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  steps: readonly Pick<StoredStep, "step" | "ofStep" | "agent" | "run">[],
): Promise<void> {
  const { pool } = going.known;
  const turns = steps.flatMap(({ agent, run }) => (agent === null || run === null ? [] : [{ agent, run }]));
  const keys = steps.flatMap((step) => definitionOf(going, step).writes);
  if (pool === null || turns.length === 0 || keys.length === 0) return;
  const [first, ...others] = steps;
  await pools.takeBackIn(
    tx,
    turns,
    pool,
    keys,
    `${first?.step}${others.length === 0 ? " is" : ` and ${others.length} more are`} done again`,
  );
}

function turnOf({ agents }: TaskParts, { known }: GoingWorkflow, step: WorkflowStep, agent: string, goal: string, causedBy: number) {
  return { input: stepWords(known, step, goal), granted: grantOfStep(known, step, agent, agents.current), causedBy };
}

export function definitionOf({ known }: GoingWorkflow, { ofStep }: Pick<StoredStep, "ofStep">): WorkflowStep {
  return (known.compiled.steps.get(ofStep) as { readonly step: WorkflowStep }).step;
}

function goalOf({ known }: GoingWorkflow, { itemIndex, item }: StepToStart["row"], step: WorkflowStep): string | StepError {
  try {
    return renderTemplate(step.goal, { input: known.input, ...(itemIndex === null ? {} : { item }) });
  } catch (error) {
    if (!isFailure(error)) throw error;
    return { code: error.code, message: error.message };
  }
}

function specOf({ known }: GoingWorkflow, { model, reads, writes }: WorkflowStep, labels: readonly Label[]): TaskSpec {
  return {
    ...(model === undefined ? {} : { model }),
    ...(known.pool === null ? {} : { scope: { pool: known.pool, reads, writes } }),
    ...(labels.length === 0 ? {} : { labels }),
  };
}

function unknownAgent({ id }: WorkflowStep, agent: string | undefined): StepError {
  const message = agent === undefined ? `the step ${id} names no agent, and there is no default one` : `there is no agent "${agent}"`;
  return { code: "agent.unknown", message };
}
