import { isFailure } from "../../kernel/failure.ts";
import { sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { indexEntry, refuseLongName } from "./transcript.ts";

const AT_ONCE = 50;

interface EntryRow {
  readonly session_key: string;
  readonly position: number;
  readonly body: string;
  readonly agent: string | null;
}

/** For the pulse: whether something is not findable yet. */
export const TRANSCRIPTS_UNINDEXED = sql`exists (select 1 from transcript where indexed = 0)`;

/** What was said before it could be searched becomes findable, some entries at a time. Any node may call it, often. */
export async function indexTranscripts(store: Store): Promise<number> {
  const rows = await store.read.all<EntryRow>`select t.session_key, t.position, t.body, s.agent from transcript as t
    left join sessions as s on s.session_key = t.session_key where t.indexed = 0 order by t.session_key, t.position limit ${AT_ONCE}`;
  for (const { session_key: key, position, body, agent } of rows)
    await store.transact(
      "index transcript",
      async (tx) => {
        const mine = await tx.run`update transcript set indexed = 1 where session_key = ${key} and position = ${position} and indexed = 0`;
        if (mine > 0 && agent !== null && fits(agent, key)) await indexEntry(tx, store.search, agent, key, position, body);
      },
      "locked",
    );
  return rows.length;
}

/** A name that was short enough for what there was then stays out of the index, and does not stop the others. */
function fits(agent: string, sessionKey: string): boolean {
  try {
    refuseLongName(agent, sessionKey);
    return true;
  } catch (error) {
    if (isFailure(error)) return false;
    throw error;
  }
}
