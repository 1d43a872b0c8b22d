import type { Reads, Tx } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";

/** For the pulse: whether there is one. */
export const TASKS_OVERDUE = sql`(select min(deadline_at) from tasks where deadline_at is not null and ended_at is null) <= now_ms()`;

/** For the pulse: whether somebody does not know yet of an end. */
export const ENDS_UNTOLD = sql`exists (select 1 from tasks where untold = 1)`;

/** Those that should be over by now, the most overdue first. */
export async function overdueTasks(reads: Reads, limit: number): Promise<string[]> {
  const rows = await reads.all<{ id: string }>`select id from tasks where deadline_at is not null and ended_at is null
    and deadline_at <= now_ms() order by deadline_at limit ${limit}`;
  return rows.map(({ id }) => id);
}

export async function isOverdue(reads: Reads, id: string): Promise<boolean> {
  return (await reads.get`select 1 from tasks where id = ${id} and ended_at is null and deadline_at <= now_ms()`) !== undefined;
}

/** Whoever opened it could not be told of its end. */
export async function markUntold(tx: Tx, id: string, untold: boolean): Promise<void> {
  await tx.run`update tasks set untold = ${untold ? 1 : null} where id = ${id}`;
}

export async function isUntold(reads: Reads, id: string): Promise<boolean> {
  return (await reads.get`select 1 from tasks where id = ${id} and untold = 1`) !== undefined;
}

/** The oldest of each who does not know of them, and of each who did them: one whose mailbox is full keeps nobody else from being told. */
export function untoldTasks(reads: Reads, ofEach: number): Promise<{ readonly id: string; readonly pair: string }[]> {
  return reads.all`select id, opened_by || ' ' || coalesce(agent, '') as pair from (
      select id, opened_by, agent, row_number() over (partition by opened_by, agent order by id) as place from tasks where untold = 1) as ranked
    where place <= ${ofEach} order by place, id`;
}
