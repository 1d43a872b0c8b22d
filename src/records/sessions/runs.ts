import { OWN_HOUSE, type Run } from "../../contract/wire.ts";
import { type Grant, readGrant } from "../../deciders/policy/grant.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { RouteDecision } from "../../deciders/routing/route.ts";
import type { ModelCall, ModelMessage, ModelSettings, ModelUsage, ToolOffer } from "../../kernel/model.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import type { Origin } from "./origin.ts";

/**
 * One turn, from its message to its reply.
 *
 *   queued → running → completed | failed
 *   queued → waiting → queued, while its agent may not answer
 *   running → queued, when it is tried again
 *   queued → running, when another turn has taken its message in (`merged_into`); it ends with that turn
 *   refused, from the beginning
 */
export interface NewRun {
  readonly id: string;
  readonly agent: string | null;
  readonly sessionKey: string | null;
  readonly address: Address;
  readonly input: string;
  readonly decision: RouteDecision;
  /** Set: the run is refused, and this is why. */
  readonly refusal: RunError | null;
  /** Of its session, when it was admitted. */
  readonly epoch?: number;
  readonly request?: RunRequest;
  /** The message of a person that it goes back to; absent or null: itself. */
  readonly root?: string | null;
  /** The task that it is a turn of, and what it may call at most. */
  readonly task?: string;
  readonly granted?: Grant;
  readonly origin?: Origin;
}

/** What whoever asked has brought beside the message. */
export interface RunRequest {
  /** The conversation, the message at its end; null: that of the session. With one of its own, a run leaves nothing in a session. */
  readonly messages: readonly ModelMessage[] | null;
  /** Told after what the agent itself is told. */
  readonly instructions: string | null;
  /** Tools that whoever asked answers himself: a turn that calls one ends with these calls as its reply. */
  readonly tools: readonly ToolOffer[];
  readonly settings: ModelSettings;
  /** Of everything that was sent, to know the same request again. */
  readonly hash: string;
}

/** A command: answered as soon as it is admitted. `error`: what was wrong with it, for programs; the reply tells it to people. */
export interface AnsweredRun extends Omit<NewRun, "refusal" | "epoch" | "agent" | "sessionKey"> {
  readonly agent: string;
  readonly sessionKey: string;
  readonly epoch: number;
  readonly reply: string;
  readonly error: RunError | null;
}

export interface RunError {
  readonly code: string;
  readonly message: string;
}

/** What a turn needs of its run. */
export interface RunInput {
  readonly id: string;
  readonly agent: string;
  readonly sessionKey: string;
  readonly address: Address;
  readonly input: string;
  readonly epoch: number;
  /** The session's own model, if it has one. */
  readonly model: string | null;
  readonly request?: RunRequest;
  /** The task that it is a turn of. */
  readonly task: string | null;
  /** What it may call at most; null: what its agent may. */
  readonly granted: Grant | null;
  /** What came with it from a chat platform. */
  readonly origin: Origin | null;
  /** How long until its task must be over, at the moment when this was read; absent: whenever it is. */
  readonly leftMs?: number;
}

/** Of what the house itself starts: the chat of tasks that leave nothing in a conversation. */
export const TASK_CHAT = "task";

/** It knows nothing of a conversation in its session, and leaves nothing there: it has brought its own, or is a task that has none. */
export function isByItself({ request, address }: Pick<RunInput, "request" | "address">): boolean {
  return Boolean(request?.messages) || (address.platform === OWN_HOUSE && address.chat === TASK_CHAT);
}

interface RunRow {
  readonly id: string;
  readonly agent: string | null;
  readonly session_key: string | null;
  readonly status: Run["status"];
  readonly address: string;
  readonly input: string;
  readonly reply: string | null;
  readonly reply_calls: string | null;
  readonly decision: string;
  readonly usage: string | null;
  readonly error: string | null;
  readonly merged_into: string | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

interface InputRow {
  readonly epoch: number;
  readonly model: string | null;
  readonly request: string | null;
  readonly task_id: string | null;
  readonly granted: string | null;
  readonly left_ms: number | null;
  readonly origin: string | null;
}

export async function addRun(tx: Tx, run: NewRun): Promise<void> {
  const error = run.refusal && JSON.stringify(run.refusal);
  await tx.run`insert into runs (id, agent, session_key, status, address, input, decision, error, created_at, ended_at, epoch, request, root_id,
      task_id, granted, origin)
    values (${run.id}, ${run.agent}, ${run.sessionKey}, ${run.refusal ? "refused" : "queued"}, ${JSON.stringify(run.address)}, ${run.input},
      ${JSON.stringify(run.decision)}, ${error}, now_ms(), case when cast(${error} as text) is null then null else now_ms() end, ${run.epoch ?? 1},
      ${run.request ? JSON.stringify(run.request) : null}, ${run.root ?? null}, ${run.task ?? null},
      ${run.granted ? JSON.stringify(run.granted) : null}, ${run.origin ? JSON.stringify(run.origin) : null})`;
}

export async function addAnsweredRun(tx: Tx, run: AnsweredRun): Promise<void> {
  await tx.run`insert into runs (id, agent, session_key, status, address, input, reply, decision, error, created_at, started_at, ended_at, epoch)
    values (${run.id}, ${run.agent}, ${run.sessionKey}, 'completed', ${JSON.stringify(run.address)}, ${run.input}, ${run.reply},
      ${JSON.stringify(run.decision)}, ${run.error && JSON.stringify(run.error)}, now_ms(), now_ms(), now_ms(), ${run.epoch})`;
}

export async function startRun(tx: Tx, id: string): Promise<void> {
  await tx.run`update runs set status = 'running', started_at = coalesce(started_at, now_ms()) where id = ${id}`;
}

/** Whether it runs, and stays so until the transaction ends. */
export async function holdRunning(store: Store, tx: Tx, id: string): Promise<boolean> {
  const row = await tx.get<{ status: string }>`select status from runs where id = ${id} ${store.dialect.forUpdate}`;
  return row?.status === "running";
}

/** Until its agent may answer. */
export async function waitRun(tx: Tx, id: string): Promise<void> {
  await tx.run`update runs set status = 'waiting' where id = ${id}`;
}

/** Its agent may answer. One that runs already was woken by somebody else, and runs on. */
export async function wakeRun(tx: Tx, id: string): Promise<void> {
  await tx.run`update runs set status = 'queued' where id = ${id} and status = 'waiting'`;
}

/** Not one that is over: it may have been stopped meanwhile. */
export async function requeueRun(tx: Tx, id: string): Promise<void> {
  await tx.run`update runs set status = 'queued' where id = ${id} and status in ('running', 'waiting')`;
}

/** `calls`: of tools that whoever asked answers himself. */
export async function completeRun(
  tx: Tx,
  id: string,
  reply: string,
  usage: ModelUsage | null,
  calls: readonly ModelCall[] = [],
): Promise<void> {
  await tx.run`update runs set status = 'completed', reply = ${reply}, usage = ${usage && JSON.stringify(usage)},
    reply_calls = ${calls.length === 0 ? null : JSON.stringify(calls)}, ended_at = now_ms() where id = ${id}`;
}

export async function failRun(tx: Tx, id: string, error: RunError): Promise<void> {
  await tx.run`update runs set status = 'failed', error = ${JSON.stringify(error)}, ended_at = now_ms() where id = ${id}`;
}

export async function readRun(reads: Reads, id: string): Promise<Run | undefined> {
  const row = await rowOf(reads, id);
  return (
    row && {
      id: row.id,
      agent: row.agent,
      sessionKey: row.session_key,
      status: row.status,
      reply: row.reply === null ? null : replyOf(row.reply, row.reply_calls),
      decision: JSON.parse(row.decision),
      usage: row.usage === null ? null : JSON.parse(row.usage),
      error: row.error === null ? null : JSON.parse(row.error),
      ...(row.merged_into === null ? {} : { mergedInto: row.merged_into }),
      createdAt: row.created_at,
      endedAt: row.ended_at,
    }
  );
}

/** Its message is part of another turn from now on, and it ends with that turn. False: it was over already. */
export async function mergeRun(tx: Tx, id: string, into: string): Promise<boolean> {
  const changed = await tx.run`update runs set status = 'running', merged_into = ${into}, started_at = now_ms()
    where id = ${id} and status in ('queued', 'waiting')`;
  return changed > 0;
}

/** Those whose messages this turn has taken in and that have not ended. */
export async function mergedRuns(reads: Reads, into: string): Promise<{ readonly id: string; readonly input: string }[]> {
  return reads.all<{ id: string; input: string }>`select id, input from runs
    where merged_into = ${into} and status in ('queued', 'running', 'waiting') order by id`;
}

/** The message of a person that this run goes back to: its own, unless another run has caused it. */
export async function rootOf(reads: Reads, id: string): Promise<string> {
  const row = await reads.get<{ root_id: string | null }>`select root_id from runs where id = ${id}`;
  return row?.root_id ?? id;
}

/** Undefined also for a refused run: nobody will take a turn for it. */
export async function readRunInput(reads: Reads, id: string): Promise<RunInput | undefined> {
  const row = await reads.get<RunRow & InputRow>`
    select r.id, r.agent, r.session_key, r.address, r.input, r.epoch, r.request, r.task_id, r.granted, r.origin, s.model,
      (select t.deadline_at - now_ms() from tasks as t where t.id = r.task_id) as left_ms from runs as r
    left join sessions as s on s.session_key = r.session_key where r.id = ${id}`;
  if (!row || row.agent === null || row.session_key === null) return undefined;
  const { agent, session_key: sessionKey, input, epoch, model } = row;
  const request = row.request === null ? {} : { request: JSON.parse(row.request) as RunRequest };
  const granted = row.granted === null ? null : readGrant(row.granted);
  const left = row.left_ms === null ? {} : { leftMs: row.left_ms };
  const address = JSON.parse(row.address) as Address;
  const origin = row.origin === null ? null : (JSON.parse(row.origin) as Origin);
  return { id: row.id, agent, sessionKey, address, input, epoch, model, task: row.task_id, granted, origin, ...left, ...request };
}

function replyOf(text: string, calls: string | null): NonNullable<Run["reply"]> {
  return calls === null ? { text } : { text, calls: JSON.parse(calls) as ModelCall[] };
}

function rowOf(reads: Reads, id: string): Promise<RunRow | undefined> {
  return reads.get<RunRow>`select id, agent, session_key, status, address, input, reply, reply_calls, decision, usage, error, merged_into,
    created_at, ended_at from runs where id = ${id}`;
}
