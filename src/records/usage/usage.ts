import type { Usage, UsageQuery, UsageRow } from "../../contract/usage.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { ModelUsage } from "../../kernel/model.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { code, list } from "../../store/sql.ts";

/** Which step of which run asked a model. */
export interface CallPlace {
  readonly run: string;
  readonly agent: string;
  readonly step: number;
}

export interface CallUsage {
  /** Which one has answered. */
  readonly model: string;
  /** Null: the provider does not tell. */
  readonly usage: ModelUsage | null;
  /** In millionths of a US dollar; null: its price is not known. */
  readonly cost: number | null;
}

interface SumRow {
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cost: number;
  readonly unpriced: number;
}

/** Days since 1970, UTC, by the database's clock. */
export const TODAY = code("cast(now_ms() as bigint) / 86400000");
const DAY_MS = 86_400_000;
const MILLIONTHS = 1e6;
const SUMS = code(`cast(coalesce(sum(calls), 0) as bigint) as calls, cast(coalesce(sum(input_tokens), 0) as bigint) as input,
  cast(coalesce(sum(output_tokens), 0) as bigint) as output, cast(coalesce(sum(cached_tokens), 0) as bigint) as cached,
  cast(coalesce(sum(cost), 0) as bigint) as cost, cast(coalesce(sum(unpriced), 0) as bigint) as unpriced`);
const COLUMNS = { day: code("day"), model: code("model"), agent: code("agent") } as const;

/**
 * What a call of a model came to, in the transaction that records its answer. A step that asks twice is the sum of both. Its row is the
 * last that such a transaction should lock: turns of one agent share the row of the day.
 */
export async function recordUsageIn(tx: Tx, { run, agent, step }: CallPlace, { model, usage, cost }: CallUsage): Promise<void> {
  const input = usage?.inputTokens ?? 0;
  const output = usage?.outputTokens ?? 0;
  const cached = usage?.cachedInputTokens ?? 0;
  const unpriced = cost === null ? 1 : 0;
  await tx.run`insert into model_calls (root_id, run_id, step, agent, model, calls, input_tokens, output_tokens, cached_tokens, cost, unpriced, at)
    values (coalesce((select root_id from runs where id = ${run}), ${run}), ${run}, ${step}, ${agent}, ${model}, 1, ${input}, ${output}, ${cached},
      ${cost ?? 0}, ${unpriced}, now_ms())
    on conflict (root_id, run_id, step) do update set calls = model_calls.calls + 1, input_tokens = model_calls.input_tokens + excluded.input_tokens,
      output_tokens = model_calls.output_tokens + excluded.output_tokens, cached_tokens = model_calls.cached_tokens + excluded.cached_tokens,
      cost = model_calls.cost + excluded.cost, unpriced = model_calls.unpriced + excluded.unpriced, model = excluded.model`;
  await tx.run`insert into usage_days (day, agent, model, calls, input_tokens, output_tokens, cached_tokens, cost, unpriced)
    values (cast(now_ms() as bigint) / 86400000, ${agent}, ${model}, 1, ${input}, ${output}, ${cached}, ${cost ?? 0}, ${unpriced})
    on conflict (agent, day, model) do update set calls = usage_days.calls + 1, input_tokens = usage_days.input_tokens + excluded.input_tokens,
      output_tokens = usage_days.output_tokens + excluded.output_tokens, cached_tokens = usage_days.cached_tokens + excluded.cached_tokens,
      cost = usage_days.cost + excluded.cost, unpriced = usage_days.unpriced + excluded.unpriced`;
}

/** What one run has used so far; undefined: it has asked no model. */
export async function usageOfRun(reads: Reads, run: string): Promise<Usage | undefined> {
  const row = await reads.get<SumRow>`select ${SUMS} from model_calls
    where root_id = coalesce((select root_id from runs where id = ${run}), ${run}) and run_id = ${run}`;
  return row && row.calls > 0 ? usageFrom(row) : undefined;
}

/** What all the turns of each of these tasks have used so far, those of tasks below them left out. */
export async function usageOfTasks(reads: Reads, tasks: readonly string[]): Promise<Map<string, Usage>> {
  if (tasks.length === 0) return new Map();
  const rows = await reads.all<SumRow & { readonly task_id: string }>`select runs.task_id as task_id, ${SUMS}
    from runs join model_calls on model_calls.root_id = coalesce(runs.root_id, runs.id) and model_calls.run_id = runs.id
    where runs.task_id in ${list(tasks)} group by runs.task_id`;
  return new Map(rows.map((row) => [row.task_id, usageFrom(row)]));
}

/** What everything came to that goes back to this run; undefined: nothing does, not even its own. */
export async function usageFromRoot(reads: Reads, run: string): Promise<Usage | undefined> {
  const row = await reads.get<SumRow>`select ${SUMS} from model_calls where root_id = ${run}`;
  return row && row.calls > 0 ? usageFrom(row) : undefined;
}

/** What was used, by day, model or agent, the last days together with today. An agent sees its own. */
export async function readUsage(reads: Reads, caller: Caller, { by, agent, days }: UsageQuery): Promise<UsageRow[]> {
  if (caller.kind === "agent" && agent !== undefined && agent !== caller.name)
    throw new Failure("request.not_found", `there is no usage of "${agent}" that you may see`);
  const whose = caller.kind === "agent" ? caller.name : (agent ?? null);
  const column = COLUMNS[by];
  const rows = await reads.all<SumRow & { readonly name: string | number }>`select ${column} as name, ${SUMS} from usage_days
    where day > ${TODAY} - ${days} and (cast(${whose} as text) is null or agent = ${whose}) group by ${column} order by ${column}`;
  return rows.map((row) => ({ [by]: by === "day" ? dayName(row.name as number) : row.name, ...usageFrom(row) }) as UsageRow);
}

function usageFrom({ calls, input, output, cached, cost, unpriced }: SumRow): Usage {
  return { calls, inputTokens: input, outputTokens: output, cachedInputTokens: cached, costUsd: cost / MILLIONTHS, unpriced };
}

function dayName(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
