import { Buffer } from "node:buffer";
import { type Relay, SHOWN_OF_ALL_READS, SHOWN_OF_ONE_READ, type Workflow } from "../../contract/workflows.ts";
import { tokensOfBytes } from "../../kernel/token-estimate.ts";
import type { Reads } from "../../store/engine.ts";

interface StepRow {
  readonly step: string;
  readonly of_step: string;
  readonly item: string | null;
  readonly result: string | null;
}

interface ReadRow {
  readonly step: string;
  readonly run: string;
  readonly key: string;
  readonly version: number;
  readonly size: number;
  /** The turn that wrote it; empty: nobody's. */
  readonly author: string;
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
 * The relay meter of one run, from what is recorded: which entries its steps have read, how large they are, what their reading calls answered, and what each
 * step came to. Null: nothing was passed on. What is counted, and what a parent is supposed to do, stands in docs/relay.md.
 */
export async function relayOf(reads: Reads, id: string, definition: Workflow, pool: string | null): Promise<Relay | null> {
  if (pool === null) return null;
  const steps = await reads.all<StepRow>`select s.step, s.of_step, s.item, t.result from workflow_steps as s
    join tasks as t on t.id = s.task_id where s.workflow_id = ${id}`;
  const turns = await reads.all<{ run: string; step: string }>`select u.id as run, s.step from workflow_steps as s cross join runs as u
    where s.workflow_id = ${id} and u.task_id = s.task_id`;
  const stepOf = new Map(turns.map(({ run, step }) => [run, step]));
  // Crossed in this order, or SQLite begins with everything that was ever read in the pool: a pool may outlive many runs.
  const all = await reads.all<ReadRow>`select s.step, u.id as run, r.key, r.version, v.size, v.run as author
    from workflow_steps as s cross join runs as u cross join pool_reads as r cross join pool_versions as v
    where s.workflow_id = ${id} and u.task_id = s.task_id and r.agent = u.agent and r.run = u.id and r.pool = ${pool} and r.shown = 0
      and v.pool = r.pool and v.key = r.key and v.version = r.version`;
  const read = all.filter(({ step, author }) => stepOf.get(author) !== step);
  const byStep = new Map(steps.map((row) => [row.step, row]));
  const levelOf = levels(definition);
  const level = (step: string): number => levelOf.get(byStep.get(step)?.of_step ?? "") ?? 0;
  const items = steps.flatMap(({ step, item }) => (item === null ? [] : [{ level: level(step), tokens: tokensOf(item) }]));
  const throughMemory = tokensOfBytes(shownAtFirst(read) + (await readByCalls(reads, id))) + sum(items.map(({ tokens }) => tokens));
  if (throughMemory === 0) return null;
  // What no step has written the parent had to read somewhere, too.
  const foreign = new Map(
    read.filter(({ author }) => !stepOf.has(author)).map(({ key, version, size }) => [`${key} ${version}`, tokensOfBytes(size)]),
  );
  const handed = read.map(({ step, size }) => ({ level: level(step), tokens: tokensOfBytes(size) }));
  const parent = throughParent([...handed, ...items], await resultsOf(reads, id, pool, steps, level), sum([...foreign.values()]));
  const spent = parent.read + parent.written + parent.handed;
  return { throughMemory, throughParent: spent, saved: Math.max(0, spent - throughMemory), parent };
}

/** What turns were shown before they began, in bytes. */
function shownAtFirst(read: readonly ReadRow[]): number {
  const byRun = Map.groupBy(read, ({ run }) => run).values();
  return sum([...byRun].map((rows) => Math.min(SHOWN_OF_ALL_READS, sum(rows.map(({ size }) => Math.min(SHOWN_OF_ONE_READ, size))))));
}

async function readByCalls(reads: Reads, id: string): Promise<number> {
  const row = await reads.get<{ bytes: number }>`select cast(coalesce(sum(length(c.result)), 0) as bigint) as bytes from workflow_steps as s
    join runs as u on u.task_id = s.task_id join tool_calls as c on c.run_id = u.id and c.tool in ('context_read', 'context_watch')
    where s.workflow_id = ${id}`;
  return row?.bytes ?? 0;
}

/** What each step has written, or where it has written nothing, answered. */
async function resultsOf(
  reads: Reads,
  id: string,
  pool: string,
  steps: readonly StepRow[],
  level: (step: string) => number,
): Promise<Passed[]> {
  const written = await reads.all<WriteRow>`select s.step, v.key, max(v.size) as size from workflow_steps as s cross join runs as u
    cross join pool_versions as v where s.workflow_id = ${id} and u.task_id = s.task_id and v.agent = u.agent and v.run = u.id and v.pool = ${pool}
    group by s.step, v.key`;
  const wrote = Map.groupBy(written, ({ step }) => step);
  return steps.map(({ step, result }) => {
    const values = wrote.get(step);
    return { level: level(step), tokens: values ? sum(values.map(({ size }) => tokensOfBytes(size))) : tokensOf(result ?? "") };
  });
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
