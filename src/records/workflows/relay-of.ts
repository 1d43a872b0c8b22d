import { Buffer } from "node:buffer";
import type { Relay, Workflow } from "../../contract/workflows.ts";
import { tokensOfBytes } from "../../kernel/token-estimate.ts";
import type { Reads } from "../../store/engine.ts";

/** Of a value that is kept elsewhere a step is shown this much, unless it asks for all of it. */
const PREVIEW_BYTES = 2_000;

interface StepRow {
  readonly step: string;
  readonly of_step: string;
  readonly item: string | null;
  readonly result: string | null;
}

interface ReadRow {
  readonly step: string;
  readonly key: string;
  readonly version: number;
  readonly size: number;
  readonly blob: string | null;
  /** The step asked for all of it. */
  readonly whole: number;
  readonly author: string | null;
}

interface WriteRow {
  readonly step: string;
  readonly key: string;
  readonly size: number;
}

/** What a step was given, or gave, in tokens. */
export interface Passed {
  readonly level: number;
  readonly tokens: number;
}

/**
 * The relay meter of one run, from what is recorded: which entries its steps have read, how large they are, and what each step came to. Null: nothing
 * was passed on. What is counted, and what a parent is supposed to do, stands in docs/relay.md.
 */
export async function relayOf(reads: Reads, id: string, definition: Workflow, pool: string | null): Promise<Relay | null> {
  if (pool === null) return null;
  const steps = await reads.all<StepRow>`select s.step, s.of_step, s.item, t.result from workflow_steps as s
    join tasks as t on t.id = s.task_id where s.workflow_id = ${id}`;
  const read = await reads.all<ReadRow>`select s.step, r.key, r.version, v.size, v.blob, a.step as author,
      case when v.blob is not null and exists (select 1 from tool_calls as c where c.run_id = u.id and c.tool = 'context_read'
        and c.args like '%"full":true%' and c.args like '%"key":"' || r.key || '"%') then 1 else 0 end as whole
    from workflow_steps as s join runs as u on u.task_id = s.task_id
    join pool_reads as r on r.agent = u.agent and r.run = u.id and r.pool = ${pool} and r.shown = 0
    join pool_versions as v on v.pool = r.pool and v.key = r.key and v.version = r.version
    left join runs as w on w.id = v.run left join workflow_steps as a on a.workflow_id = s.workflow_id and a.task_id = w.task_id
    where s.workflow_id = ${id} and s.task_id is not null and (a.step is null or a.step <> s.step)`;
  const written =
    await reads.all<WriteRow>`select s.step, v.key, max(v.size) as size from workflow_steps as s join runs as u on u.task_id = s.task_id
    join pool_versions as v on v.agent = u.agent and v.run = u.id and v.pool = ${pool} where s.workflow_id = ${id} and s.task_id is not null
    group by s.step, v.key`;
  const levelOf = levels(definition);
  const level = ({ of_step: step }: Pick<StepRow, "of_step">): number => levelOf.get(step) ?? 0;
  const byStep = new Map(steps.map((row) => [row.step, row]));
  const items = steps.flatMap((row) => (row.item === null ? [] : [{ level: level(row), tokens: tokensOf(row.item) }]));
  const handed = read.map((row) => ({ level: level(byStep.get(row.step) as StepRow), tokens: tokensOfBytes(row.size) }));
  const shown = read.map(({ size, blob, whole }) => tokensOfBytes(blob !== null && whole === 0 ? Math.min(size, PREVIEW_BYTES) : size));
  const throughMemory = sum(shown) + sum(items.map(({ tokens }) => tokens));
  if (throughMemory === 0) return null;
  // What no step has written the parent had to read somewhere, too.
  const foreign = new Map(
    read.filter(({ author }) => author === null).map(({ key, version, size }) => [`${key} ${version}`, tokensOfBytes(size)]),
  );
  const wrote = Map.groupBy(written, (row) => row.step);
  const results = steps.map((row) => ({
    level: level(row),
    tokens: wrote.has(row.step) ? sum((wrote.get(row.step) ?? []).map(({ size }) => tokensOfBytes(size))) : tokensOf(row.result ?? ""),
  }));
  const parent = throughParent([...handed, ...items], results, sum([...foreign.values()]));
  const all = parent.read + parent.written + parent.handed;
  return { throughMemory, throughParent: all, saved: Math.max(0, all - throughMemory), parent };
}

/**
 * A parent that starts all steps of a level in one call, reads what they answer in its next one, and has everything it has read and
 * written before it in each of its calls. `known`: what it has to read before the first.
 */
export function throughParent(handed: readonly Passed[], results: readonly Passed[], known: number): NonNullable<Relay["parent"]> {
  const last = Math.max(0, ...results.map(({ level }) => level), ...handed.map(({ level }) => level));
  const at = (passed: readonly Passed[], level: number): number =>
    sum(passed.filter((each) => each.level === level).map(({ tokens }) => tokens));
  let context = known;
  let read = 0;
  let written = 0;
  for (let level = 0; level <= last; level++) {
    read += context;
    written += at(handed, level);
    context += at(handed, level) + at(results, level);
  }
  return { read: read + context, written, handed: written };
}

/** How many steps at least come before each. */
function levels({ steps }: Workflow): ReadonlyMap<string, number> {
  const needs = new Map(steps.map((step) => [step.id, step.needs]));
  const known = new Map<string, number>();
  const levelOf = (step: string): number => {
    const before = known.get(step);
    if (before !== undefined) return before;
    known.set(step, 0);
    const level = Math.max(-1, ...(needs.get(step) ?? []).map(levelOf)) + 1;
    known.set(step, level);
    return level;
  };
  for (const { id } of steps) levelOf(id);
  return known;
}

function tokensOf(text: string): number {
  return tokensOfBytes(Buffer.byteLength(text));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
