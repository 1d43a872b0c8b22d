import type { Reads, Tx } from "../../store/engine.ts";

/**
 * What a conversation is now. `/new` begins a new epoch: turns see what was said in their own epoch only, and a turn belongs to the
 * epoch in which its message was admitted.
 */
export interface SessionState {
  readonly epoch: number;
  /** Replaces the agent's own model, in every epoch, until it is taken back. */
  readonly model: string | null;
  readonly messages: number;
  readonly lastAt: number | null;
}

const FRESH: SessionState = { epoch: 1, model: null, messages: 0, lastAt: null };
const TITLE_CHARACTERS = 80;

interface StateRow {
  readonly epoch: number;
  readonly model: string | null;
  readonly messages: number;
  readonly last_at: number;
}

/** Counts one more message, and holds the session until the transaction ends. Answers the epoch that the message belongs to. */
export async function enterSession(tx: Tx, sessionKey: string, agent: string, text: string): Promise<number> {
  const row = await tx.get<{ epoch: number }>`insert into sessions (session_key, agent, epoch, model, title, messages, created_at, last_at)
    values (${sessionKey}, ${agent}, 1, null, ${titleOf(text)}, 1, now_ms(), now_ms())
    on conflict (session_key) do update set messages = sessions.messages + 1, last_at = now_ms(),
      title = case when sessions.title = '' then excluded.title else sessions.title end returning epoch`;
  return row?.epoch as number;
}

/** Answers the new epoch's number. */
export async function beginEpoch(tx: Tx, sessionKey: string, agent: string): Promise<number> {
  const row = await tx.get<{ epoch: number }>`insert into sessions (session_key, agent, epoch, model, title, messages, created_at, last_at)
    values (${sessionKey}, ${agent}, 2, null, '', 0, now_ms(), now_ms())
    on conflict (session_key) do update set epoch = sessions.epoch + 1 returning epoch`;
  return row?.epoch as number;
}

export async function setSessionModel(tx: Tx, sessionKey: string, agent: string, model: string | null): Promise<void> {
  await tx.run`insert into sessions (session_key, agent, epoch, model, title, messages, created_at, last_at)
    values (${sessionKey}, ${agent}, 1, ${model}, '', 0, now_ms(), now_ms())
    on conflict (session_key) do update set model = excluded.model`;
}

export async function readSessionState(reads: Reads, sessionKey: string): Promise<SessionState> {
  const row = await reads.get<StateRow>`select epoch, model, messages, last_at from sessions where session_key = ${sessionKey}`;
  return row ? { epoch: row.epoch, model: row.model, messages: row.messages, lastAt: row.last_at } : FRESH;
}

function titleOf(text: string): string {
  const line = text
    .slice(0, 10 * TITLE_CHARACTERS)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= TITLE_CHARACTERS ? line.toWellFormed() : `${line.slice(0, TITLE_CHARACTERS - 1).toWellFormed()}…`;
}
