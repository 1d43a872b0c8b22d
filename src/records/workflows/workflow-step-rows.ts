import type { StepState } from "../../contract/workflows.ts";
import type { ItemCounts } from "../../deciders/planning/plan.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list, SqlFragment, sql } from "../../store/sql.ts";

export interface StepError {
  readonly code: string;
  readonly message: string;
}

/** What a step finished on that had changed meanwhile. */
export interface StaleNote {
  readonly key: string;
  readonly read: number;
  readonly current: number | null;
}

/** Of a `foreach`: how many items are in which state, and the version of the list that they come from. */
export type ItemsOfStep = ItemCounts & { readonly version: number; readonly external: boolean };

export interface StoredStep {
  /** Of one item of a `foreach`: `<id>[<index>]`. */
  readonly step: string;
  readonly ofStep: string;
  readonly itemIndex: number | null;
  readonly item: unknown;
  /** Of a `foreach` that has begun. */
  readonly items: ItemsOfStep | null;
  readonly state: StepState;
  readonly agent: string | null;
  readonly task: string | null;
  readonly run: string | null;
  readonly attempts: number;
  readonly staleReruns: number;
  readonly error: StepError | null;
  /** A person has let it through. */
  readonly approved: boolean;
  readonly reused: boolean;
}

interface StepRow {
  readonly step: string;
  readonly of_step: string;
  readonly item_index: number | null;
  readonly item: string | null;
  readonly items: string | null;
  readonly state: StepState;
  readonly agent: string | null;
  readonly task_id: string | null;
  readonly run_id: string | null;
  readonly attempts: number;
  readonly stale_reruns: number;
  readonly error: string | null;
  readonly review: string | null;
  readonly reused: number;
}

export interface NewStepRow {
  readonly step: string;
  readonly ofStep: string;
  readonly itemIndex?: number | null;
  readonly item?: unknown;
  readonly state: StepState;
}

/** How many rows one statement adds: PostgreSQL takes 65,535 values at most. */
const AT_ONCE = 500;

export async function addSteps(tx: Tx, workflow: string, steps: readonly NewStepRow[]): Promise<void> {
  for (let from = 0; from < steps.length; from += AT_ONCE) {
    const rows = steps.slice(from, from + AT_ONCE);
    const values = rows.map(({ step, ofStep, itemIndex = null, item, state }, index) => {
      const before = index === 0 ? "" : ", ";
      const row = sql`(${workflow}, ${step}, ${ofStep}, cast(${itemIndex} as bigint), ${itemIndex === null ? null : JSON.stringify(item ?? null)}, ${state}, 0, 0, 0)`;
      return new SqlFragment([before + row.strings[0], ...row.strings.slice(1)], row.values);
    });
    await tx.run`insert into workflow_steps (workflow_id, step, of_step, item_index, item, state, attempts, stale_reruns, reused)
      values ${joined(values)}`;
  }
}

function joined(fragments: readonly SqlFragment[]): SqlFragment {
  return new SqlFragment(["", ...fragments.map(() => "")], fragments);
}

export async function readStep(reads: Reads, workflow: string, step: string): Promise<StoredStep | undefined> {
  const row =
    await reads.get<StepRow>`select step, of_step, item_index, item, items, state, agent, task_id, run_id, attempts, stale_reruns, error,
    review, reused from workflow_steps where workflow_id = ${workflow} and step = ${step}`;
  return row && stepOf(row);
}

/** Several, or all of a run with the items of each `foreach`. */
export async function readSteps(reads: Reads, workflow: string, steps?: readonly string[]): Promise<StoredStep[]> {
  const only = steps === undefined ? sql`` : sql`and step in ${list(steps)}`;
  const rows =
    await reads.all<StepRow>`select step, of_step, item_index, item, items, state, agent, task_id, run_id, attempts, stale_reruns, error,
    review, reused from workflow_steps where workflow_id = ${workflow} ${only}`;
  return rows.map(stepOf);
}

/** Of a `foreach`, in their order. */
export async function waitingItems(reads: Reads, workflow: string, step: string, most: number): Promise<StoredStep[]> {
  const rows =
    await reads.all<StepRow>`select step, of_step, item_index, item, items, state, agent, task_id, run_id, attempts, stale_reruns, error,
    review, reused from workflow_steps where workflow_id = ${workflow} and of_step = ${step} and item_index is not null and state = 'waiting'
    order by item_index limit ${most}`;
  return rows.map(stepOf);
}

/** It may run: this is its task, and the newest of its turns. */
export async function startStep(
  tx: Tx,
  workflow: string,
  step: string,
  { agent, task, run }: { readonly agent: string; readonly task: string; readonly run: string },
): Promise<void> {
  await tx.run`update workflow_steps set state = 'ready', agent = ${agent}, task_id = ${task}, run_id = ${run}, attempts = 1, ready_at = now_ms()
    where workflow_id = ${workflow} and step = ${step}`;
}

/** One more attempt of the same task. `stale`: what it had read was changed, which is nobody's failure. */
export async function repeatStep(
  tx: Tx,
  workflow: string,
  step: string,
  { run, error, stale }: { readonly run: string; readonly error: StepError | null; readonly stale: boolean },
): Promise<void> {
  const more = stale ? 1 : 0;
  await tx.run`update workflow_steps set state = 'ready', started_at = coalesce(started_at, (select started_at from runs where id = run_id)),
      run_id = ${run}, attempts = attempts + 1, stale_reruns = stale_reruns + ${more}, error = ${error && JSON.stringify(error)}, ready_at = now_ms()
    where workflow_id = ${workflow} and step = ${step}`;
}

/** Its turn has begun. Nobody else leaves `ready`: whoever ends it has removed the turn first. */
export async function beginStep(tx: Tx, workflow: string, step: string, run: string): Promise<boolean> {
  const changed = await tx.run`update workflow_steps set state = 'running', started_at = coalesce(started_at, now_ms())
    where workflow_id = ${workflow} and step = ${step} and run_id = ${run} and state = 'ready'`;
  return changed > 0;
}

export interface StepEnd {
  readonly state: "completed" | "failed" | "skipped" | "cancelled";
  readonly error: StepError | null;
  readonly stale?: readonly StaleNote[] | undefined;
}

export async function endStep(tx: Tx, workflow: string, step: string, { state, error, stale }: StepEnd): Promise<void> {
  await tx.run`update workflow_steps set state = ${state}, error = ${error && JSON.stringify(error)},
    stale = ${stale && stale.length > 0 ? JSON.stringify(stale) : null},
    ended_at = now_ms() where workflow_id = ${workflow} and step = ${step}`;
}

/** A `foreach`: its items are rows of their own. */
export async function setItems(tx: Tx, workflow: string, step: string, items: ItemsOfStep): Promise<void> {
  await tx.run`update workflow_steps set state = 'running', items = ${JSON.stringify(items)}, started_at = coalesce(started_at, now_ms()),
      ended_at = null, error = null, reused = 0
    where workflow_id = ${workflow} and step = ${step}`;
}

export interface Review {
  readonly verdict: "approve" | "reject";
  readonly by: string;
  readonly note: string | null;
}

export async function awaitReview(tx: Tx, workflow: string, step: string): Promise<void> {
  await tx.run`update workflow_steps set state = 'review', ready_at = now_ms() where workflow_id = ${workflow} and step = ${step}`;
}

export async function noteReview(tx: Tx, workflow: string, step: string, review: Review): Promise<void> {
  await tx.run`update workflow_steps set review = ${JSON.stringify(review)} where workflow_id = ${workflow} and step = ${step}`;
}

/** Those of them that have not begun will not begin. Answers how many of the run's own steps, without items of a `foreach`, these are. */
export async function cancelUnbegun(tx: Tx, workflow: string, steps: readonly string[], error: StepError): Promise<string[]> {
  if (steps.length === 0) return [];
  const rows = await tx.all<{
    step: string;
  }>`update workflow_steps set state = 'cancelled', error = ${JSON.stringify(error)}, ended_at = now_ms()
    where workflow_id = ${workflow} and step in ${list(steps)} and state in ('waiting', 'review') returning step`;
  return rows.map(({ step }) => step);
}

/** Everything that is not over, whatever it is doing. Answers what it was. */
export async function cancelOpen(tx: Tx, workflow: string, error: StepError): Promise<StoredStep[]> {
  const rows = await tx.all<StepRow>`update workflow_steps set state = 'cancelled', error = ${JSON.stringify(error)}, ended_at = now_ms()
    where workflow_id = ${workflow} and state in ('waiting', 'ready', 'running', 'review')
    returning step, of_step, item_index, item, items, state, agent, task_id, run_id, attempts, stale_reruns, error, review, reused`;
  return rows.map(stepOf);
}

/** As if they had not begun; what they came to before is forgotten. Items of a `foreach` that begins anew go. */
export async function resetSteps(tx: Tx, workflow: string, steps: readonly string[]): Promise<void> {
  if (steps.length === 0) return;
  await tx.run`update workflow_steps set state = 'waiting', task_id = null, run_id = null, attempts = 0, stale_reruns = 0, error = null,
      stale = null, review = null, items = null, reused = 0, ready_at = null, started_at = null, ended_at = null
    where workflow_id = ${workflow} and step in ${list(steps)}`;
}

export async function removeItems(tx: Tx, workflow: string, step: string): Promise<void> {
  await tx.run`delete from workflow_steps where workflow_id = ${workflow} and of_step = ${step} and item_index is not null`;
}

/** Takes steps over from another run, as they ended there. */
export async function reuseSteps(tx: Tx, workflow: string, from: string, steps: readonly string[]): Promise<void> {
  if (steps.length === 0) return;
  await tx.run`delete from workflow_steps where workflow_id = ${workflow} and step in ${list(steps)}`;
  await tx.run`insert into workflow_steps (workflow_id, step, of_step, item_index, item, items, state, agent, task_id, run_id, attempts,
      stale_reruns, error, stale, review, reused, ready_at, started_at, ended_at)
    select ${workflow}, step, of_step, item_index, item, items, state, agent, task_id, run_id, attempts, stale_reruns, error, stale, review, 1, ready_at,
      started_at, ended_at
    from workflow_steps where workflow_id = ${from} and step in ${list(steps)}`;
}

function stepOf(row: StepRow): StoredStep {
  return {
    step: row.step,
    ofStep: row.of_step,
    itemIndex: row.item_index,
    item: row.item === null ? undefined : JSON.parse(row.item),
    items: row.items === null ? null : (JSON.parse(row.items) as ItemsOfStep),
    state: row.state,
    agent: row.agent,
    task: row.task_id,
    run: row.run_id,
    attempts: row.attempts,
    staleReruns: row.stale_reruns,
    error: row.error === null ? null : (JSON.parse(row.error) as StepError),
    approved: row.review !== null && (JSON.parse(row.review) as Review).verdict === "approve",
    reused: row.reused === 1,
  };
}
