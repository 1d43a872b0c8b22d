import type { Reads } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";

const SHOWN_CHARACTERS = 200;

export interface OpenCall {
  readonly runId: string;
  readonly tool: string;
  /** The beginning of them. */
  readonly args: string;
  readonly state: "asked" | "intended" | "waiting";
  readonly since: number;
}

/** Calls of these runs that run now, or wait for a person or for tasks. */
export async function readOpenCalls(reads: Reads, runIds: readonly string[]): Promise<OpenCall[]> {
  if (runIds.length === 0) return [];
  const rows = await reads.all<{ run_id: string; tool: string; args: string; state: OpenCall["state"]; started_at: number }>`
    select run_id, tool, substr(args, 1, ${SHOWN_CHARACTERS}) as args, state, started_at from tool_calls
    where run_id in ${list(runIds)} and state in ('asked', 'intended', 'waiting') order by run_id, step, place`;
  return rows.map((row) => ({ runId: row.run_id, tool: row.tool, args: row.args, state: row.state, since: row.started_at }));
}
