import type { Reads } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";

/** Ids that begin so, at most two: enough to know whether it is one. `from`: only of what this one has started. */
export async function workflowRunsBeginning(reads: Reads, prefix: string, from: string | null): Promise<string[]> {
  const ofWhom = from === null ? sql`` : sql`and opened_by = ${from}`;
  const rows = await reads.all<{ id: string }>`select id from workflow_runs where id >= ${prefix} and id < ${`${prefix}~`} ${ofWhom}
    order by id limit 2`;
  return rows.map(({ id }) => id);
}
