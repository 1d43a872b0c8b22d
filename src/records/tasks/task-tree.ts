import type { Reads } from "../../store/engine.ts";
import { code, list } from "../../store/sql.ts";
import { readTask, type StoredTask } from "./task-rows.ts";

/** Tasks, and turns that have opened tasks; all that is below them belongs to it. */
export interface TreeOfTasks {
  readonly tasks?: readonly string[];
  readonly runs?: readonly string[];
  /** Of what the turns have opened, what none of them waits for is left out. */
  readonly keepBackground?: boolean;
}

/** Those of it that are not over, in the order they were opened. Also below one that is over something may go on. */
export async function openTasksBelow(reads: Reads, { tasks = [], runs = [], keepBackground = false }: TreeOfTasks): Promise<StoredTask[]> {
  const waited = keepBackground ? code("and waiter is not null") : code("");
  const rows = await reads.all<{ id: string }>`with recursive below (id) as (
      select id from tasks where id in ${list(tasks)}
      union select id from tasks where parent_run in ${list(runs)} ${waited}
      union select t.id from tasks as t join below on t.parent_id = below.id)
    select id from tasks where id in (select id from below) and ended_at is null order by id`;
  const found: StoredTask[] = [];
  for (const { id } of rows) found.push((await readTask(reads, id)) as StoredTask);
  return found;
}

/** Whether `below` is `above` or was opened under it. */
export async function isBelow(reads: Reads, below: string, above: string): Promise<boolean> {
  const row = await reads.get`with recursive way (id, parent_id) as (
      select id, parent_id from tasks where id = ${below}
      union select t.id, t.parent_id from tasks as t join way on t.id = way.parent_id)
    select 1 from way where id = ${above}`;
  return row !== undefined;
}

/** Whether it, or a task above it, was opened by this one. */
export async function wasOpenedUnder(reads: Reads, id: string, by: string): Promise<boolean> {
  const row = await reads.get`with recursive way (id, parent_id, opened_by) as (
      select id, parent_id, opened_by from tasks where id = ${id}
      union select t.id, t.parent_id, t.opened_by from tasks as t join way on t.id = way.parent_id)
    select 1 from way where opened_by = ${by} limit 1`;
  return row !== undefined;
}

/** The turns that have worked on it; of a workflow, on its steps. */
export async function runsOfTask(reads: Reads, { id, kind }: Pick<StoredTask, "id" | "kind">): Promise<string[]> {
  const rows =
    kind === "workflow"
      ? await reads.all<{
          id: string;
        }>`select r.id from tasks as t join runs as r on r.task_id = t.id where t.parent_id = ${id} and t.workflow_id = ${id}`
      : await reads.all<{ id: string }>`select id from runs where task_id = ${id}`;
  return rows.map((row) => row.id);
}

/** Whether another task that this turn waits for goes on. */
export async function waitsForMore(reads: Reads, run: string, waiter: number): Promise<boolean> {
  const row = await reads.get`select 1 from tasks where parent_run = ${run} and ended_at is null and waiter = ${waiter} limit 1`;
  return row !== undefined;
}
