import type { Usage } from "../../contract/usage.ts";
import {
  isStepOver,
  type RunStepView,
  type StepState,
  type Workflow,
  type WorkflowRun,
  type WorkflowRunList,
  type WorkflowState,
} from "../../contract/workflows.ts";
import type { Reads } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";
import { relayOf } from "./relay-of.ts";

interface RunRow {
  readonly id: string;
  readonly name: string;
  readonly status: WorkflowState;
  readonly definition: string;
  readonly input: string;
  readonly outputs: string | null;
  readonly error: string | null;
  readonly pool: string | null;
  readonly opened_by: string;
  readonly lineage: string;
  readonly paused: number;
  readonly rerun_of: string | null;
  readonly rerun_from: string | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

interface StepRow {
  readonly step: string;
  readonly of_step: string;
  readonly item_index: number | null;
  readonly state: StepState;
  readonly agent: string | null;
  readonly task_id: string | null;
  readonly run_id: string | null;
  readonly attempts: number;
  readonly error: string | null;
  readonly stale: string | null;
  readonly reused: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;
}

interface SumRow {
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cost: number;
  readonly unpriced: number;
}

const MILLIONTHS = 1e6;

/** As programs are told of it. */
export async function readWorkflowRun(reads: Reads, id: string): Promise<WorkflowRun | undefined> {
  const row =
    await reads.get<RunRow>`select r.id, name, status, definition, input, outputs, error, pool, opened_by, lineage, paused, rerun_of,
    rerun_from, created_at, ended_at from workflow_runs as r join workflow_facts as f on f.id = r.id where r.id = ${id}`;
  if (!row) return undefined;
  const definition = JSON.parse(row.definition) as Workflow;
  const { root } = JSON.parse(row.lineage) as { readonly root: string };
  return {
    id,
    name: row.name,
    status: row.status,
    steps: await stepsOf(reads, id, definition),
    outputs: row.outputs === null ? {} : JSON.parse(row.outputs),
    usage: await usageBelow(reads, id, root),
    relay: await relayOf(reads, id, definition, row.pool),
    error: row.error === null ? null : JSON.parse(row.error),
    input: JSON.parse(row.input),
    pool: row.pool,
    from: row.opened_by,
    paused: row.paused === 1,
    rerunOf: row.rerun_of === null ? null : { id: row.rerun_of, from: JSON.parse(row.rerun_from ?? "[]") },
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}

async function stepsOf(reads: Reads, id: string, definition: Workflow): Promise<RunStepView[]> {
  const rows = await reads.all<StepRow>`select step, of_step, item_index, state, agent, task_id, run_id, attempts, error, stale, reused,
    started_at, ended_at from workflow_steps where workflow_id = ${id}`;
  const byStep = Map.groupBy(rows, (row) => row.of_step);
  return definition.steps.flatMap(({ id: step, needs, agent }) =>
    (byStep.get(step) ?? [])
      .toSorted((a, b) => (a.item_index ?? -1) - (b.item_index ?? -1))
      .map((row) => ({
        id: row.step,
        agent: row.agent ?? agent ?? null,
        status: row.state,
        attempts: row.attempts,
        startedAt: row.started_at,
        endedAt: row.ended_at,
        error: row.error === null ? null : JSON.parse(row.error),
        task: row.task_id,
        run: row.run_id,
        needs,
        ...(row.stale === null ? {} : { stale: JSON.parse(row.stale) }),
        ...(row.reused === 1 ? { reused: true } : {}),
      })),
  );
}

/** Of a task and everything below it; null: no model was asked. `root`: the message or task that it all goes back to. */
export async function usageBelow(reads: Reads, task: string, root: string): Promise<Usage | null> {
  const row = await reads.get<SumRow>`with recursive below (id) as (
      select id from tasks where id = ${task} union all select t.id from tasks as t join below as b on t.parent_id = b.id)
    select cast(coalesce(sum(m.calls), 0) as bigint) as calls, cast(coalesce(sum(m.input_tokens), 0) as bigint) as input,
      cast(coalesce(sum(m.output_tokens), 0) as bigint) as output, cast(coalesce(sum(m.cached_tokens), 0) as bigint) as cached,
      cast(coalesce(sum(m.cost), 0) as bigint) as cost, cast(coalesce(sum(m.unpriced), 0) as bigint) as unpriced
    from below as b join runs as r on r.task_id = b.id join model_calls as m on m.run_id = r.id and m.root_id = ${root}`;
  if (!row || row.calls === 0) return null;
  const { calls, input, output, cached, cost, unpriced } = row;
  return { calls, inputTokens: input, outputTokens: output, cachedInputTokens: cached, costUsd: cost / MILLIONTHS, unpriced };
}

interface HeadRow {
  readonly id: string;
  readonly name: string;
  readonly status: WorkflowState;
  readonly opened_by: string;
  readonly paused: number;
  readonly created_at: number;
  readonly ended_at: number | null;
}

export interface WorkflowListQuery {
  readonly limit?: number;
  /** `next` of the part before. */
  readonly before?: string | undefined;
  readonly status?: WorkflowState | undefined;
  /** Only what this one has started; absent: everybody's. */
  readonly from?: string | undefined;
}

const PAGE = 50;

/** Newest first. */
export async function listWorkflowRuns(reads: Reads, query: WorkflowListQuery = {}): Promise<WorkflowRunList> {
  const limit = query.limit ?? PAGE;
  const below = query.before === undefined ? sql`` : sql`and id < ${query.before}`;
  const inState = query.status === undefined ? sql`` : sql`and status = ${query.status}`;
  const ofWhom = query.from === undefined ? sql`` : sql`and opened_by = ${query.from}`;
  const rows = await reads.all<HeadRow>`select id, name, status, opened_by, paused, created_at, ended_at from workflow_runs
    where 1 = 1 ${below} ${inState} ${ofWhom} order by id desc limit ${limit + 1}`;
  const page = rows.slice(0, limit);
  const counts = new Map<string, { all: number; over: number }>();
  for (const { id } of page) counts.set(id, await countSteps(reads, id));
  return {
    runs: page.map((row) => ({
      id: row.id,
      name: row.name,
      status: row.status,
      from: row.opened_by,
      paused: row.paused === 1,
      createdAt: row.created_at,
      endedAt: row.ended_at,
      steps: counts.get(row.id) ?? { all: 0, over: 0 },
    })),
    next: rows.length > limit ? (page.at(-1)?.id ?? null) : null,
  };
}

async function countSteps(reads: Reads, id: string): Promise<{ all: number; over: number }> {
  const rows = await reads.all<{ state: StepState; many: number }>`select state, cast(count(*) as bigint) as many from workflow_steps
    where workflow_id = ${id} and item_index is null group by state`;
  const sum = (some: typeof rows): number => some.reduce((total, { many }) => total + many, 0);
  return { all: sum(rows), over: sum(rows.filter(({ state }) => isStepOver(state))) };
}
