import type { Said } from "../../kernel/model.ts";
import type { Scope } from "../../kernel/scope.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { scopeKey } from "../../store/keys.ts";
import type { Search } from "../../store/search.ts";
import { type SqlFragment, sql } from "../../store/sql.ts";

/** Where what was said is found by its words. */
export const TRANSCRIPT_DOCUMENTS = "transcript";
/** What of an entry can be found: cutting a longer text into words would keep everybody waiting. */
const INDEXED_CHARACTERS = 20_000;
/** What is read of a conversation at once: a hundred messages may be a hundred megabytes. */
const READ_BYTES = 2_000_000;

/** What a turn belongs to. */
export interface TranscriptPlace {
  readonly agent: string;
  readonly sessionKey: string;
  readonly epoch: number;
}

/** The newest entries of an epoch, oldest first: at most `limit`, and no more text than a turn can be asked to hold. */
export async function readTranscript(reads: Reads, sessionKey: string, epoch: number, limit: number): Promise<Said[]> {
  // Epochs follow each other, so that older ones need not be looked through to know that this one has only begun. A turn whose owners
  // all died is written down late, when the next epoch may have begun: that is what the other half is for.
  const newest = sql`(select position, epoch, octet_length(body) as bytes from transcript where session_key = ${sessionKey}
    order by position desc limit ${2 * limit}) as newest where epoch = ${epoch}`;
  const rows = await reads.all<{ role: Said["role"]; body: string }>`select role, body from transcript
    where session_key = ${sessionKey} and position in (${fitting(newest, limit)}) order by position`;
  return rows.map((row) => ({ role: row.role, text: row.body }));
}

/** Positions of the newest entries that may be read at once: one in any case, and more while their text is not too long together. */
export function fitting(newest: SqlFragment, limit: number): SqlFragment {
  return sql`select position from (select position, row_number() over (order by position desc) as place,
    sum(bytes) over (order by position desc) as total from ${newest}) as counted
    where place <= ${limit} and (place = 1 or total <= ${READ_BYTES})`;
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
