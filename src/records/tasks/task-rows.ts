import type { TaskKind, TaskStatus } from "../../contract/tasks.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { Label } from "../../kernel/label.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import { addViewersIn, viewersOfNew } from "./task-viewers.ts";

/** The keys of a pool that a task may use, and no others. */
export interface TaskScope {
  readonly pool: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

/** What else there is to know of a task. All of it may be absent. */
export interface TaskSpec {
  /** Instead of the agent's own. */
  readonly model?: string;
  readonly scope?: TaskScope;
  /** JSON Schema that the answer must fit. */
  readonly outputSchema?: unknown;
  /** Nobody waits for it: its end is told by mail. */
  readonly background?: boolean;
  /** Within whoever opened it: later tasks by the same name know what was said in earlier ones. */
  readonly conversation?: string;
  /** False: whoever does it may not delegate further. */
  readonly allowSubagents?: boolean;
  /** By whom it was asked for, where a program has named it. */
  readonly idempotencyKey?: string;
  /** Turns that wait for it beside the first, by their rows in the work queue. */
  readonly alsoWaiters?: readonly number[];
  /** Of a one-off child: where its parent is spoken to, which is where it has its files and what it remembers. */
  readonly place?: Address;
  /** What whoever opened it had seen: it begins with it. */
  readonly labels?: readonly Label[];
  readonly schedule?: string;
  /** Of a job that an agent made in a conversation on a channel: there it is told what came of it. */
  readonly tells?: { readonly place: Address; readonly job: string };
  /** The houses that it has passed before this one, where one elsewhere asks for it. */
  readonly hops?: readonly string[];
}

/**
 * Something that somebody is asked to do for somebody.
 *
 *   queued → running → completed | failed | cancelled
 *   running ⇄ waiting, for a person or for tasks of its own
 *   unknown: it was begun elsewhere, and nobody can be asked any more what came of it
 *
 * What it is doing while it is open is told by its run; the row says how it ended, once.
 */
export interface StoredTask {
  readonly id: string;
  readonly kind: TaskKind;
  readonly agent: string | null;
  readonly from: string;
  readonly goal: string;
  readonly status: TaskStatus;
  readonly result: unknown;
  readonly error: TaskError | null;
  readonly parent: string | null;
  /** The turn whose call opened it. */
  readonly parentRun: string | null;
  /** The message or task that it all goes back to. */
  readonly root: string;
  readonly depth: number;
  /** The smallest along its chain. */
  readonly maxDepth: number;
  /** The agents from the root down to this one. */
  readonly chain: readonly string[];
  readonly run: string | null;
  /** The row in the work queue of its newest turn. */
  readonly work: number | null;
  /** The work row of the turn that waits for it. */
  readonly waiter: number | null;
  readonly spec: TaskSpec;
  readonly workflow: string | null;
  readonly step: string | null;
  readonly deadlineAt: number | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

export interface TaskError {
  readonly code: string;
  readonly message: string;
}

export type NewTaskRow = Pick<
  StoredTask,
  "id" | "kind" | "agent" | "from" | "goal" | "parent" | "parentRun" | "root" | "depth" | "maxDepth" | "chain" | "spec"
> &
  Partial<Pick<StoredTask, "workflow" | "step" | "waiter" | "run" | "work">> & {
    /** From now on, by the database's clock. */
    readonly timeoutMs?: number | null;
    /** Null: every one is another. */
    readonly idempotencyKey?: string | null;
  };

interface TaskRow {
  readonly id: string;
  readonly kind: TaskKind;
  readonly agent: string | null;
  readonly opened_by: string;
  readonly goal: string;
  readonly status: TaskStatus;
  readonly result: string | null;
  readonly error: string | null;
  readonly parent_id: string | null;
  readonly parent_run: string | null;
  readonly root_id: string;
  readonly depth: number;
  readonly max_depth: number;
  readonly chain: string;
  readonly run_id: string | null;
  readonly work_id: number | null;
  readonly waiter: number | null;
  readonly spec: string;
  readonly workflow_id: string | null;
  readonly step: string | null;
  readonly deadline_at: number | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

/**
 * Findable by whoever opened it, does it, or did so with a task above it, as soon as it is indexed (task-index.ts). False: somebody was faster with
 * the same key, and nothing was added.
 */
export async function addTask(tx: Tx, task: NewTaskRow): Promise<boolean> {
  const timeout = task.timeoutMs ?? null;
  const key = task.idempotencyKey ?? null;
  const viewers = await viewersOfNew(tx, task);
  const added =
    await tx.run`insert into tasks (id, kind, agent, opened_by, goal, status, parent_id, parent_run, root_id, depth, max_depth, chain, spec, workflow_id,
      step, waiter, deadline_at, created_at, idempotency, viewers, run_id, work_id)
    values (${task.id}, ${task.kind}, ${task.agent}, ${task.from}, ${task.goal}, 'queued', ${task.parent}, ${task.parentRun}, ${task.root},
      ${task.depth}, ${task.maxDepth}, ${JSON.stringify(task.chain)}, ${JSON.stringify(task.spec)}, ${task.workflow ?? null}, ${task.step ?? null},
      ${task.waiter ?? null}, now_ms() + cast(${timeout} as bigint), now_ms(), ${key === null ? null : keyOf(task.from, key)},
      ${JSON.stringify(viewers)}, ${task.run ?? null}, ${task.work ?? null})
    on conflict do nothing`;
  if (added === 0) return false;
  await addViewersIn(tx, task.id, viewers);
  return true;
}

function keyOf(from: string, key: string): string {
  return JSON.stringify([from, key]);
}

/** Opened by this one with this key. */
export async function readTaskByKey(reads: Reads, from: string, key: string): Promise<StoredTask | undefined> {
  const row = await reads.get<{ id: string }>`select id from tasks where idempotency = ${keyOf(from, key)}`;
  return row && readTask(reads, row.id);
}

/** Tasks that this turn has opened and that are not over. */
export async function countOpenBelow(reads: Reads, run: string): Promise<number> {
  const row = await reads.get<{ open: number }>`select count(*) as open from tasks where parent_run = ${run} and ended_at is null`;
  return row?.open ?? 0;
}

/** One more turn waits for it. Nothing happens where it is over. */
export async function alsoWait(store: Store, tx: Tx, id: string, waiter: number): Promise<void> {
  const task = await holdTask(store, tx, id);
  if (!task || task.endedAt !== null || task.waiter === waiter || task.spec.alsoWaiters?.includes(waiter)) return;
  const spec: TaskSpec = task.waiter === null ? task.spec : { ...task.spec, alsoWaiters: [...(task.spec.alsoWaiters ?? []), waiter] };
  await tx.run`update tasks set waiter = ${task.waiter ?? waiter}, spec = ${JSON.stringify(spec)} where id = ${id}`;
}

/** Its newest turn. */
export async function setTaskRun(tx: Tx, id: string, runId: string, workId: number): Promise<void> {
  await tx.run`update tasks set run_id = ${runId}, work_id = ${workId} where id = ${id}`;
}

/** The row in the work queue of a task's newest turn; null: this is no such turn. */
export async function workOfTaskRun(reads: Reads, run: string): Promise<number | null> {
  const row = await reads.get<{
    work_id: number | null;
  }>`select t.work_id from runs as r join tasks as t on t.id = r.task_id and t.run_id = r.id
    where r.id = ${run}`;
  return row?.work_id ?? null;
}

/** It has so much time from now on, by the database's clock. */
export async function setDeadline(tx: Tx, id: string, timeoutMs: number): Promise<void> {
  await tx.run`update tasks set deadline_at = now_ms() + cast(${Math.round(timeoutMs)} as bigint) where id = ${id}`;
}

/** A person wants it to go on after its end. Nobody waits for it any more. False: it is no longer kept. */
export async function reopenTask(tx: Tx, id: string): Promise<boolean> {
  const reopened = await tx.run`update tasks set status = 'queued', result = null, error = null, ended_at = null, waiter = null, indexed = 0
    where id = ${id}`;
  return reopened > 0;
}

export interface TaskEnd {
  readonly status: "completed" | "failed" | "cancelled" | "unknown";
  readonly result: unknown;
  readonly error: TaskError | null;
}

/** Once: one that has ended stays as it is. Answers whether this is how it ended. */
export async function endTask(tx: Tx, id: string, { status, result, error }: TaskEnd): Promise<boolean> {
  const changed = await tx.run`update tasks set status = ${status}, result = ${result === undefined ? null : JSON.stringify(result)},
    error = ${error && JSON.stringify(error)}, ended_at = now_ms(), indexed = 0 where id = ${id} and ended_at is null`;
  return changed > 0;
}

export async function readTask(reads: Reads, id: string): Promise<StoredTask | undefined> {
  const row =
    await reads.get<TaskRow>`select id, kind, agent, opened_by, goal, status, result, error, parent_id, parent_run, root_id, depth, max_depth,
    chain, run_id, work_id, waiter, spec, workflow_id, step, deadline_at, created_at, ended_at from tasks where id = ${id}`;
  return row && taskOf(row);
}

/** Held until the transaction ends. */
export async function holdTask(store: Store, tx: Tx, id: string): Promise<StoredTask | undefined> {
  const row =
    await tx.get<TaskRow>`select id, kind, agent, opened_by, goal, status, result, error, parent_id, parent_run, root_id, depth, max_depth,
    chain, run_id, work_id, waiter, spec, workflow_id, step, deadline_at, created_at, ended_at from tasks where id = ${id} ${store.dialect.forUpdate}`;
  return row && taskOf(row);
}

function taskOf(row: TaskRow): StoredTask {
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
    parentRun: row.parent_run,
    root: row.root_id,
    depth: row.depth,
    maxDepth: row.max_depth,
    chain: JSON.parse(row.chain) as string[],
    run: row.run_id,
    work: row.work_id,
    waiter: row.waiter,
    spec: JSON.parse(row.spec) as TaskSpec,
    workflow: row.workflow_id,
    step: row.step,
    deadlineAt: row.deadline_at,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}
