import type { Label } from "../../kernel/label.ts";
import type { Image } from "../../kernel/model.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";

/**
 * One call of a tool, by the place it has in the answer that asked for it.
 *
 *   asked (a person is to approve it) → intended | refused
 *   intended (it may have begun) → done | unknown (nobody can know, and it is never made again)
 *   waiting (it has opened `tasks`, in the transaction that says so) → done, with what came of them
 *   done, refused, from the beginning: it changed nothing that would have to be known beforehand
 */
export type CallState = "asked" | "intended" | "waiting" | "done" | "refused" | "unknown";

/** What the model reads of a call. */
export interface CallResult {
  readonly text: string;
  readonly failed: boolean;
  readonly images?: readonly Image[];
  /** The turn ends with this as its reply. */
  readonly ends?: string;
}

export interface CallPlace {
  readonly runId: string;
  readonly step: number;
  readonly place: number;
}

export interface NewCall extends CallPlace {
  readonly callId: string;
  readonly tool: string;
  /** Canonical JSON. */
  readonly args: string;
  readonly effect: "pure" | "keyed" | "unsafe";
}

export interface CallRecord extends NewCall {
  readonly state: CallState;
  readonly result: CallResult | null;
  readonly labels: readonly Label[];
  readonly approval: string | null;
  /** What it waits for, or has waited for. */
  readonly tasks?: readonly string[];
  readonly startedAt: number;
  readonly endedAt: number | null;
}

interface CallRow {
  readonly run_id: string;
  readonly step: number;
  readonly place: number;
  readonly call_id: string;
  readonly tool: string;
  readonly args: string;
  readonly effect: NewCall["effect"];
  readonly state: CallState;
  readonly result: string | null;
  readonly labels: string;
  readonly approval_id: string | null;
  readonly tasks: string | null;
  readonly started_at: number;
  readonly ended_at: number | null;
}

/** Before it is made, or while a person is asked. */
export async function noteCall(tx: Tx, call: NewCall, state: "asked" | "intended", approval: string | null): Promise<void> {
  await tx.run`insert into tool_calls (run_id, step, place, call_id, tool, args, effect, state, labels, approval_id, started_at)
    values (${call.runId}, ${call.step}, ${call.place}, ${call.callId}, ${call.tool}, ${call.args}, ${call.effect}, ${state}, '', ${approval}, now_ms())
    on conflict (run_id, step, place) do update set state = excluded.state, approval_id = coalesce(excluded.approval_id, tool_calls.approval_id)`;
}

/** It has opened tasks, and waits for them. */
export async function noteWaitingCall(tx: Tx, call: NewCall, tasks: readonly string[]): Promise<void> {
  await tx.run`insert into tool_calls (run_id, step, place, call_id, tool, args, effect, state, labels, tasks, started_at)
    values (${call.runId}, ${call.step}, ${call.place}, ${call.callId}, ${call.tool}, ${call.args}, ${call.effect}, 'waiting', '',
      ${JSON.stringify(tasks)}, now_ms())
    on conflict (run_id, step, place) do update set state = excluded.state, tasks = excluded.tasks`;
}

/** What came of it. Once: a result that is there stays. Answers whether this one counts. */
export async function endCall(
  tx: Tx,
  call: NewCall,
  state: "done" | "refused" | "unknown",
  result: CallResult,
  labels: readonly Label[] = [],
): Promise<boolean> {
  const changed =
    await tx.run`insert into tool_calls (run_id, step, place, call_id, tool, args, effect, state, result, labels, started_at, ended_at)
    values (${call.runId}, ${call.step}, ${call.place}, ${call.callId}, ${call.tool}, ${call.args}, ${call.effect}, ${state},
      ${JSON.stringify(result)}, ${labels.join(" ")}, now_ms(), now_ms())
    on conflict (run_id, step, place) do update set state = excluded.state, result = excluded.result, labels = excluded.labels,
      ended_at = excluded.ended_at where tool_calls.result is null`;
  return changed > 0;
}

/** Whether the turn made a call that must never be made twice; one that was refused was not made. */
export async function madeUnsafeCall(reads: Reads, runId: string): Promise<boolean> {
  const row =
    await reads.get`select 1 from tool_calls where run_id = ${runId} and effect = 'unsafe' and state in ('intended', 'done', 'unknown')
    limit 1`;
  return row !== undefined;
}

/** How many calls of this tool the turn has made that did what they were to do. */
export async function countMade(reads: Reads, runId: string, tool: string): Promise<number> {
  // Inside the text of a result every quote is escaped, so that nothing in it can look like this.
  const made = '%"failed":false%';
  const row = await reads.get<{ count: number }>`select count(*) as count from tool_calls
    where run_id = ${runId} and tool = ${tool} and state = 'done' and result like ${made}`;
  return Number(row?.count ?? 0);
}

export async function readCalls(reads: Reads, runId: string): Promise<CallRecord[]> {
  return readCallsOf(reads, [runId]);
}

export async function readCallsOf(reads: Reads, runIds: readonly string[]): Promise<CallRecord[]> {
  const rows = await reads.all<CallRow>`select run_id, step, place, call_id, tool, args, effect, state, result, labels, approval_id,
    tasks, started_at, ended_at from tool_calls where run_id in ${list(runIds)} order by run_id, step, place`;
  return rows.map((row) => ({
    runId: row.run_id,
    step: row.step,
    place: row.place,
    callId: row.call_id,
    tool: row.tool,
    args: row.args,
    effect: row.effect,
    state: row.state,
    result: row.result === null ? null : (JSON.parse(row.result) as CallResult),
    labels: row.labels === "" ? [] : (row.labels.split(" ") as Label[]),
    approval: row.approval_id,
    ...(row.tasks === null ? {} : { tasks: JSON.parse(row.tasks) as string[] }),
    startedAt: row.started_at,
    endedAt: row.ended_at,
  }));
}
