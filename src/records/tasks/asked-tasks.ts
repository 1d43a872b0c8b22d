import type { TaskStatus } from "../../contract/tasks.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import type { TaskError, TaskSpec } from "./task-rows.ts";
import { STATUS } from "./task-view.ts";

/** A task that a program or an agent elsewhere has asked for, as it stands. */
export interface AskedTask {
  readonly id: string;
  readonly agent: string;
  readonly from: string;
  readonly goal: string;
  readonly status: TaskStatus;
  readonly result: unknown;
  readonly error: TaskError | null;
  readonly run: string | null;
  readonly conversation: string | null;
  /** Of the message that opened it; null: it had none. */
  readonly messageId: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

interface AskedRow {
  readonly id: string;
  readonly agent: string;
  readonly opened_by: string;
  readonly goal: string;
  readonly status: TaskStatus;
  readonly result: string | null;
  readonly error: string | null;
  readonly run_id: string | null;
  readonly spec: string;
  readonly idempotency: string | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

const COLUMNS = sql`t.id, t.agent, t.opened_by, t.goal, t.result, t.error, t.run_id, t.spec, t.idempotency, t.created_at, t.ended_at, ${STATUS} as status`;
const NOTHING = code("");

/** The key under which a message opens its task, once. */
export function messageKey(agent: string, messageId: string): string {
  return `a2a:${agent}:${messageId}`;
}

export async function readAskedTask(reads: Reads, id: string): Promise<AskedTask | undefined> {
  const row = await reads.get<AskedRow>`select ${COLUMNS} from tasks as t where t.id = ${id} and t.kind = 'api'`;
  return row && askedOf(row);
}

export interface AskedQuery {
  readonly agent: string;
  /** Null: whoever has asked. */
  readonly from: string | null;
  readonly statuses: readonly TaskStatus[] | null;
  readonly conversation: string | null;
  /** Ended or opened from then on. */
  readonly since: number | null;
}

/** The newest first, before the one that is named. */
export async function listAskedTasks(reads: Reads, query: AskedQuery, before: string | null, limit: number): Promise<AskedTask[]> {
  const rows = await reads.all<AskedRow>`select ${COLUMNS} from tasks as t where ${matching(query)}
    ${before === null ? NOTHING : sql`and t.id < ${before}`} order by t.id desc limit ${limit}`;
  return rows.map(askedOf);
}

/** Not beyond `most`: whoever has a million would keep everybody waiting for a number. */
export async function countAskedTasks(reads: Reads, query: AskedQuery, most: number): Promise<number> {
  const row = await reads.get<{ found: number }>`select count(*) as found from
    (select 1 from tasks as t where ${matching(query)} limit ${most}) as counted`;
  return row?.found ?? 0;
}

function matching({ agent, from, statuses, conversation, since }: AskedQuery): SqlFragment {
  return sql`t.kind = 'api' and t.agent = ${agent} ${from === null ? NOTHING : sql`and t.opened_by = ${from}`}
    ${statuses === null ? NOTHING : sql`and ${STATUS} in ${list(statuses)}`}
    ${conversation === null ? NOTHING : sql`and t.conversation = ${conversation}`}
    ${since === null ? NOTHING : sql`and coalesce(t.ended_at, t.created_at) >= cast(${since} as bigint)`}`;
}

/** How many of a caller's tasks are open. Until the transaction ends, nobody else counts them. */
export async function countOpenOf(store: Store, tx: Tx, caller: string): Promise<number> {
  await tx.run`insert into a2a_callers (caller) values (${caller}) on conflict (caller) do nothing`;
  await tx.get`select caller from a2a_callers where caller = ${caller} ${store.dialect.forUpdate}`;
  const row = await tx.get<{
    open: number;
  }>`select count(*) as open from tasks where opened_by = ${caller} and kind = 'api' and ended_at is null`;
  return row?.open ?? 0;
}

/** By what it is found again when its context is asked for. */
export async function setConversation(tx: Tx, id: string, conversation: string): Promise<void> {
  await tx.run`update tasks set conversation = ${conversation} where id = ${id}`;
}

function askedOf(row: AskedRow): AskedTask {
  const [, key = ""] = row.idempotency === null ? [] : (JSON.parse(row.idempotency) as [string, string]);
  const prefix = messageKey(row.agent, "");
  return {
    id: row.id,
    agent: row.agent,
    from: row.opened_by,
    goal: row.goal,
    status: row.status,
    result: row.result === null ? null : JSON.parse(row.result),
    error: row.error === null ? null : (JSON.parse(row.error) as TaskError),
    run: row.run_id,
    conversation: (JSON.parse(row.spec) as TaskSpec).conversation ?? null,
    messageId: key.startsWith(prefix) ? key.slice(prefix.length) : null,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}
