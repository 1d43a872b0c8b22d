import type { Said } from "../../kernel/model.ts";
import type { Reads, Tx } from "../../store/engine.ts";

/** The newest `limit` entries of a conversation, oldest first. */
export async function readTranscript(reads: Reads, sessionKey: string, limit: number): Promise<Said[]> {
  const rows = await reads.all<{ role: Said["role"]; body: string }>`select role, body from transcript
    where session_key = ${sessionKey} order by position desc limit ${limit}`;
  return rows.reverse().map((row) => ({ role: row.role, text: row.body }));
}

/** Turns of a session run one after another (its lane), so the next position is never contested. */
export async function appendTranscript(tx: Tx, sessionKey: string, runId: string, entries: readonly Said[]): Promise<void> {
  const last = await tx.get<{ position: number }>`select position from transcript
    where session_key = ${sessionKey} order by position desc limit 1`;
  let position = last?.position ?? 0;
  for (const { role, text } of entries) {
    position++;
    await tx.run`insert into transcript (session_key, position, role, body, run_id, at)
      values (${sessionKey}, ${position}, ${role}, ${text}, ${runId}, now_ms())`;
  }
}
