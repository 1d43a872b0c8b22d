import type { Run } from "../../contract/wire.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { RouteDecision } from "../../deciders/routing/route.ts";
import type { ModelUsage } from "../../kernel/model.ts";
import type { Reads, Tx } from "../../store/engine.ts";

/**
 * One turn, from its message to its reply.
 *
 *   queued → running → completed | failed
 *   running → queued, when it is tried again
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
}

interface RunRow {
  readonly id: string;
  readonly agent: string | null;
  readonly session_key: string | null;
  readonly status: Run["status"];
  readonly address: string;
  readonly input: string;
  readonly reply: string | null;
  readonly decision: string;
  readonly usage: string | null;
  readonly error: string | null;
  readonly created_at: number;
  readonly ended_at: number | null;
}

export async function addRun(tx: Tx, run: NewRun): Promise<void> {
  const error = run.refusal && JSON.stringify(run.refusal);
  await tx.run`insert into runs (id, agent, session_key, status, address, input, decision, error, created_at, ended_at)
    values (${run.id}, ${run.agent}, ${run.sessionKey}, ${run.refusal ? "refused" : "queued"}, ${JSON.stringify(run.address)}, ${run.input},
      ${JSON.stringify(run.decision)}, ${error}, now_ms(), case when cast(${error} as text) is null then null else now_ms() end)`;
}

export async function startRun(tx: Tx, id: string): Promise<void> {
  await tx.run`update runs set status = 'running', started_at = coalesce(started_at, now_ms()) where id = ${id}`;
}

export async function requeueRun(tx: Tx, id: string): Promise<void> {
  await tx.run`update runs set status = 'queued' where id = ${id}`;
}

export async function completeRun(tx: Tx, id: string, reply: string, usage: ModelUsage | null): Promise<void> {
  await tx.run`update runs set status = 'completed', reply = ${reply}, usage = ${usage && JSON.stringify(usage)}, ended_at = now_ms() where id = ${id}`;
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
      reply: row.reply === null ? null : { text: row.reply },
      decision: JSON.parse(row.decision),
      usage: row.usage === null ? null : JSON.parse(row.usage),
      error: row.error === null ? null : JSON.parse(row.error),
      createdAt: row.created_at,
      endedAt: row.ended_at,
    }
  );
}

/** Undefined also for a refused run: nobody will take a turn for it. */
export async function readRunInput(reads: Reads, id: string): Promise<RunInput | undefined> {
  const row = await rowOf(reads, id);
  if (!row || row.agent === null || row.session_key === null) return undefined;
  return { id: row.id, agent: row.agent, sessionKey: row.session_key, address: JSON.parse(row.address), input: row.input };
}

function rowOf(reads: Reads, id: string): Promise<RunRow | undefined> {
  return reads.get<RunRow>`select id, agent, session_key, status, address, input, reply, decision, usage, error, created_at, ended_at
    from runs where id = ${id}`;
}
