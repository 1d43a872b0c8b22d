import type { Usage } from "../../contract/usage.ts";
import type { Reads } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";
import type { StoredStep } from "./workflow-step-rows.ts";

/** By run, the step that it was a turn of: every attempt of these steps. */
export async function runsOfSteps(reads: Reads, steps: readonly Pick<StoredStep, "step" | "task">[]): Promise<ReadonlyMap<string, string>> {
  const byTask = new Map(steps.flatMap(({ step, task }) => (task === null ? [] : [[task, step] as const])));
  const rows = await reads.all<{ id: string; task: string }>`select id, task_id as task from runs
    where task_id in ${list([...byTask.keys()])} order by id`;
  return new Map(rows.map(({ id, task }) => [id, byTask.get(task) as string]));
}

/** A call that changed the world outside. */
export interface WorldChange {
  readonly step: string;
  readonly tool: string;
  readonly effect: "keyed" | "unsafe";
  readonly args: string;
}

const SHORT = 500;
/** These change nothing but what the run itself shares. */
const OWN = ["context_write"];

/** Of these turns, by run the step; refused calls were not made. */
export async function worldChangesOf(reads: Reads, runs: ReadonlyMap<string, string>): Promise<WorldChange[]> {
  const rows = await reads.all<{ run_id: string; tool: string; effect: "keyed" | "unsafe"; args: string }>`select run_id, tool, effect, args
    from tool_calls where run_id in ${list([...runs.keys()])} and effect <> 'pure' and state in ('intended', 'done', 'unknown')
      and tool not in ${list(OWN)} order by run_id, step, place`;
  return rows.map(({ run_id, tool, effect, args }) => ({
    step: runs.get(run_id) as string,
    tool,
    effect,
    args: args.length <= SHORT ? args : `${args.slice(0, SHORT).toWellFormed()}…`,
  }));
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

/** What models were asked in these turns, and in what they delegated. */
export async function usageOfRuns(reads: Reads, runs: ReadonlyMap<string, string>): Promise<Usage> {
  const ids = [...runs.keys()];
  const row = await reads.get<SumRow>`with recursive below (run) as (
      select id from runs where id in ${list(ids)}
      union select r.id from below as b join tasks as t on t.parent_run = b.run join runs as r on r.task_id = t.id)
    select cast(coalesce(sum(m.calls), 0) as bigint) as calls, cast(coalesce(sum(m.input_tokens), 0) as bigint) as input,
      cast(coalesce(sum(m.output_tokens), 0) as bigint) as output, cast(coalesce(sum(m.cached_tokens), 0) as bigint) as cached,
      cast(coalesce(sum(m.cost), 0) as bigint) as cost, cast(coalesce(sum(m.unpriced), 0) as bigint) as unpriced
    from below as b join runs as r on r.id = b.run join model_calls as m on m.root_id = coalesce(r.root_id, r.id) and m.run_id = r.id`;
  const { calls = 0, input = 0, output = 0, cached = 0, cost = 0, unpriced = 0 } = row ?? {};
  return { calls, inputTokens: input, outputTokens: output, cachedInputTokens: cached, costUsd: cost / MILLIONTHS, unpriced };
}
