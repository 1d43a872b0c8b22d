import type { Task } from "../../contract/tasks.ts";
import type { Usage } from "../../contract/usage.ts";
import type { Reads } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import type { TaskError } from "./task-rows.ts";

/** A task with what its newest turn, or its workflow, says that it is doing. */
export interface ShownRow {
  readonly id: string;
  readonly kind: Task["kind"];
  readonly agent: string | null;
  readonly opened_by: string;
  readonly goal: string;
  readonly status: Task["status"];
  readonly result: string | null;
  readonly error: string | null;
  readonly parent_id: string | null;
  readonly depth: number;
  readonly run_id: string | null;
  readonly workflow_id: string | null;
  readonly step: string | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

/**
 * How it stands. A turn that is over while its task is not is about to be followed by another, or was the last before the end is told: queued.
 * One that an agent elsewhere does has no turn; it runs.
 */
export const STATUS = code(`case when t.ended_at is not null then t.status
  when t.kind = 'workflow' then coalesce((select case when w.status = 'waiting' then 'waiting' else 'running' end from workflow_runs as w
    where w.id = t.id), 'queued')
  when t.kind = 'remote' then 'running'
  else coalesce((select case when r.status in ('running', 'waiting') then r.status else 'queued' end from runs as r where r.id = t.run_id),
    'queued') end`);

const COLUMNS = code(`t.id, t.kind, t.agent, t.opened_by, t.goal, t.result, t.error, t.parent_id, t.depth, t.run_id, t.workflow_id, t.step,
  t.created_at, t.ended_at`);
export const SHOWN = sql`${COLUMNS}, ${STATUS} as status`;

interface SumRow {
  readonly top: string;
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cost: number;
  readonly unpriced: number;
}

const MILLIONTHS = 1e6;
/** Deeper than any chain that can be opened: whoever writes rows by hand cannot make a circle of them. */
const DEEPEST = 100;

/** With what each of them cost together with everything below it. */
export async function shown(reads: Reads, rows: readonly ShownRow[]): Promise<Task[]> {
  const usages = await usageBelow(reads, list(rows.map(({ id }) => id)));
  return rows.map((row) => taskOf(row, usages.get(row.id) ?? null));
}

/** `cross`: SQLite keeps to this order. By itself it began with all turns of all tasks, and looked each up in the tree: seconds among a million. */
async function usageBelow(reads: Reads, tops: SqlFragment): Promise<Map<string, Usage>> {
  const rows = await reads.all<SumRow>`with recursive tree (top, id, level) as (
      select t.id, t.id, 0 from tasks as t where t.id in ${tops}
      union all select tree.top, t.id, tree.level + 1 from tree join tasks as t on t.parent_id = tree.id where tree.level < ${DEEPEST})
    select tree.top, cast(sum(m.calls) as bigint) as calls, cast(sum(m.input_tokens) as bigint) as input,
      cast(sum(m.output_tokens) as bigint) as output, cast(sum(m.cached_tokens) as bigint) as cached, cast(sum(m.cost) as bigint) as cost,
      cast(sum(m.unpriced) as bigint) as unpriced
    from tree cross join runs as r cross join model_calls as m
    where r.task_id = tree.id and m.root_id = coalesce(r.root_id, r.id) and m.run_id = r.id group by tree.top`;
  return new Map(rows.map(({ top, ...sums }) => [top, usageFrom(sums)]));
}

function usageFrom({ calls, input, output, cached, cost, unpriced }: Omit<SumRow, "top">): Usage {
  return { calls, inputTokens: input, outputTokens: output, cachedInputTokens: cached, costUsd: cost / MILLIONTHS, unpriced };
}

function taskOf(row: ShownRow, usage: Usage | null): Task {
  return {
    id: row.id,
    kind: row.kind,
    agent: row.agent,
    from: row.opened_by,
    goal: row.goal,
    status: row.status,
    result: row.result === null ? null : JSON.parse(row.result),
    error: row.error === null ? null : (JSON.parse(row.error) as TaskError),
    parent: row.parent_id,
    depth: row.depth,
    usage,
    createdAt: row.created_at,
    endedAt: row.ended_at,
    run: row.run_id,
    workflow: row.workflow_id,
    step: row.step,
  };
}
