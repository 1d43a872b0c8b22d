import type { StepState } from "../../contract/workflows.ts";
import { isStepOver } from "../../contract/workflows.ts";
import type { ConditionValues, StepFacts } from "../../deciders/planning/condition.ts";
import { candidatesAfter, countItems, keysWanted, type PlannedStep, plan, restsOn } from "../../deciders/planning/plan.ts";
import type { CurrentValue } from "../../records/pools/step-memory.ts";
import {
  addSteps,
  awaitReview,
  cancelUnbegun,
  endStep,
  type ItemsOfStep,
  readSteps,
  type StepEnd,
  type StoredStep,
  setItems,
} from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { count, type GoingWorkflow, tell } from "./going-workflow.ts";
import { startItemsIn } from "./start-items.ts";
import { startStepIn } from "./start-step.ts";
import { valuesOf } from "./values-of.ts";

export interface Advance {
  /** What is known of their states in this transaction already. */
  readonly states?: ReadonlyMap<string, StepState>;
  /** Steps that a person has let through. */
  readonly approved?: ReadonlySet<string>;
}

/** Looks at these steps, and at whoever depends on those that are over by that, until nothing more follows. */
export async function advanceIn(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  candidates: readonly string[],
  { states: given = new Map(), approved = new Set() }: Advance = {},
): Promise<void> {
  const { compiled } = going.known;
  const states = new Map(given);
  for (let next = candidates; next.length > 0; ) {
    await readStates(tx, going, states, next);
    const current = await valuesOf(parts, tx, going, keysWanted(compiled, { states, approved }, next));
    const values: ConditionValues = {
      input: going.known.input,
      outputs: Object.fromEntries([...current].map(([key, { value }]) => [key, value])),
      steps: await stepFacts(tx, going, next),
    };
    const over: string[] = [];
    for (const planned of plan(compiled, { states, values, approved, paused: going.standing.paused }, next)) {
      const state = await apply(parts, tx, going, planned, current);
      if (state === null) continue;
      states.set(planned.step, state);
      // With a step that is lost all that rests on it is over already.
      if (isLost(state)) for (const one of restsOn(compiled, [planned.step])) states.set(one, "cancelled");
      else if (isStepOver(state)) over.push(planned.step);
    }
    next = candidatesAfter(compiled, over);
  }
}

/** A step of the run, not an item of one, is over: what rests on one that is lost is over with it. */
export async function endStepIn(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  step: string,
  end: StepEnd & { readonly told?: object },
): Promise<void> {
  await endStep(tx, going.known.id, step, end);
  const data = { step, ...(end.error ? { error: end.error } : {}), ...end.told };
  const ended = await tell(parts, tx, going, `step.${end.state}`, data);
  count(going, { open: -1, failed: isLost(end.state) ? 1 : 0 });
  if (!isLost(end.state)) return;
  const error = { code: "workflow.step_failed", message: `${step}, which it rests on, is ${end.state}` };
  const resting = await cancelUnbegun(tx, going.known.id, restsOn(going.known.compiled, [step]), error);
  if (resting.length === 0) return;
  count(going, { open: -resting.length });
  await tell(parts, tx, { ...going, causedBy: ended }, "step.cancelled", { steps: resting, because: error.message });
}

export function isLost(state: StepState): boolean {
  return state === "failed" || state === "cancelled";
}

/** Answers the state that the step has now; null: as it was. */
async function apply(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  planned: PlannedStep,
  values: ReadonlyMap<string, CurrentValue>,
): Promise<StepState | null> {
  const { step } = planned;
  switch (planned.action) {
    case "wait":
      return null;
    case "start": {
      const error = await startStepIn(parts, tx, going, { row: { step, ofStep: step, itemIndex: null, item: undefined } });
      if (error) return fail(parts, tx, going, step, error);
      count(going, { active: 1 });
      return "ready";
    }
    case "review":
      await awaitReview(tx, going.known.id, step);
      await tell(parts, tx, going, "step.ready", { step, review: "human" });
      return "review";
    case "expand":
      return expand(parts, tx, going, planned, values);
    case "fail":
      return fail(parts, tx, going, step, planned.failure);
    case "skip":
    case "complete": {
      const state = planned.action === "skip" ? "skipped" : "completed";
      await endStepIn(parts, tx, going, step, { state, error: null, told: { because: planned.because } });
      return state;
    }
    case "cancel":
      // Whatever rests on a failure was ended with it; this is for runs that others have written.
      await endStepIn(parts, tx, going, step, { state: "cancelled", error: { code: "workflow.step_failed", message: planned.because } });
      return "cancelled";
  }
}

async function fail(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  step: string,
  error: { code: string; message: string },
): Promise<StepState> {
  await endStepIn(parts, tx, going, step, { state: "failed", error: { code: error.code, message: error.message } });
  return "failed";
}

/** One row per item; as many begin as may. */
async function expand(
  parts: TaskParts,
  tx: Tx,
  going: GoingWorkflow,
  { step, items }: PlannedStep & { readonly action: "expand" },
  values: ReadonlyMap<string, CurrentValue>,
): Promise<StepState> {
  const rows = items.map((item, index) => ({
    step: `${step}[${index}]`,
    ofStep: step,
    itemIndex: index,
    item,
    state: "waiting" as const,
  }));
  await addSteps(tx, going.known.id, rows);
  const list = values.get(going.known.compiled.steps.get(step)?.step.foreach as string);
  const counts: ItemsOfStep = {
    ...countItems(rows.map(({ state }) => state)),
    version: list?.version ?? 0,
    external: list?.external ?? false,
  };
  await setItems(tx, going.known.id, step, counts);
  count(going, { active: 1 });
  await tell(parts, tx, going, "step.started", { step, items: items.length });
  const outcome = await startItemsIn(parts, tx, going, step, counts);
  if (outcome === null) return "running";
  await endStepIn(parts, tx, going, step, outcome);
  count(going, { active: -1 });
  return outcome.state;
}

async function readStates(tx: Tx, { known }: GoingWorkflow, states: Map<string, StepState>, candidates: readonly string[]): Promise<void> {
  const wanted = new Set<string>();
  for (const id of candidates)
    for (const one of [id, ...(known.compiled.steps.get(id)?.looksAt ?? [])]) if (!states.has(one)) wanted.add(one);
  if (wanted.size === 0) return;
  for (const { step, state } of await readSteps(tx, known.id, [...wanted])) states.set(step, state);
}

/** Of the steps that a `when` among these names. */
async function stepFacts(tx: Tx, { known }: GoingWorkflow, candidates: readonly string[]): Promise<Record<string, StepFacts>> {
  const wanted = new Set<string>();
  for (const id of candidates) {
    const named = known.compiled.steps.get(id)?.condition?.steps ?? [];
    for (const one of named === "all" ? known.compiled.order : named) wanted.add(one);
  }
  if (wanted.size === 0) return {};
  const rows = await readSteps(tx, known.id, [...wanted]);
  const facts: [string, StepFacts][] = [];
  for (const row of rows) facts.push([row.step, { status: row.state, attempts: row.attempts, answer: await answerOf(tx, row) }]);
  return Object.fromEntries(facts);
}

async function answerOf(tx: Tx, { task, state }: StoredStep): Promise<string | null> {
  if (task === null || state !== "completed") return null;
  const row = await tx.get<{ result: string | null }>`select result from tasks where id = ${task}`;
  const result: unknown = row?.result ? JSON.parse(row.result) : null;
  return typeof result === "string" ? result : null;
}
