import type { Said } from "../../kernel/model.ts";
import type { Scope } from "../../kernel/scope.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { scopeKey } from "../../store/keys.ts";
import type { Search } from "../../store/search.ts";

/** Where what was said is found by its words. */
export const TRANSCRIPT_DOCUMENTS = "transcript";
/** What of an entry can be found: cutting a longer text into words would keep everybody waiting. */
const INDEXED_CHARACTERS = 20_000;

/** What a turn belongs to. */
export interface TranscriptPlace {
  readonly agent: string;
  readonly sessionKey: string;
  readonly epoch: number;
}

/** The newest `limit` entries of an epoch, oldest first. */
export async function readTranscript(reads: Reads, sessionKey: string, epoch: number, limit: number): Promise<Said[]> {
  const rows = await reads.all<{ role: Said["role"]; body: string }>`select role, body from transcript
    where session_key = ${sessionKey} and epoch = ${epoch} order by position desc limit ${limit}`;
  return rows.reverse().map((row) => ({ role: row.role, text: row.body }));
}

/**
 * Turns of a session run one after another (its lane), so the next position is never contested. With each entry goes what it is
 * found by: nothing is found that is not there.
 */
export async function appendTranscript(
  tx: Tx,
  search: Search,
  place: TranscriptPlace,
  runId: string,
  entries: readonly Said[],
): Promise<void> {
  const { agent, sessionKey, epoch } = place;
  const last = await tx.get<{ position: number }>`select position from transcript
    where session_key = ${sessionKey} order by position desc limit 1`;
  let position = last?.position ?? 0;
  for (const { role, text } of entries) {
    position++;
    await tx.run`insert into transcript (session_key, position, role, body, run_id, at, epoch, indexed)
      values (${sessionKey}, ${position}, ${role}, ${text}, ${runId}, now_ms(), ${epoch}, 1)`;
    await indexEntry(tx, search, agent, sessionKey, position, text);
  }
}

export function indexEntry(tx: Tx, search: Search, agent: string, sessionKey: string, position: number, text: string): Promise<void> {
  return search.put(tx, {
    collection: TRANSCRIPT_DOCUMENTS,
    id: `${position}@${sessionKey}`,
    scope: scopeOf(agent, sessionKey),
    text: text.slice(0, INDEXED_CHARACTERS).toWellFormed(),
  });
}

/** Refuses a name that is too long for the tables, before anything rests on it. */
export function refuseLongName(agent: string, sessionKey: string): void {
  scopeKey(scopeOf(agent, sessionKey));
}

function scopeOf(agent: string, sessionKey: string): Scope {
  return ["agent", agent, sessionKey];
}
