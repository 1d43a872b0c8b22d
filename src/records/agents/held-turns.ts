import type { Reads, Tx } from "../../store/engine.ts";
import { list, sql } from "../../store/sql.ts";

/** A turn that waits for its agent: its work item is parked, and this row says for whom. */
export interface HeldTurn {
  readonly workId: number;
  readonly agent: string;
  readonly runId: string;
  /** Of the config that said so. A node that knows only an older one does not know better. */
  readonly revision: number;
}

interface HeldRow {
  readonly work_id: number;
  readonly agent: string;
  readonly run_id: string;
  readonly revision: number;
}

export async function addHeldTurn(tx: Tx, { workId, agent, runId, revision }: HeldTurn): Promise<void> {
  await tx.run`insert into held_turns (work_id, agent, run_id, revision, at) values (${workId}, ${agent}, ${runId}, ${revision}, now_ms())
    on conflict (work_id) do update set revision = excluded.revision, at = excluded.at`;
}

/** For the pulse: whether anybody waits. */
export const HELD_TURNS = sql`exists (select 1 from held_turns)`;

/** For whom turns wait, and the newest revision that said so. */
export async function heldAgents(reads: Reads): Promise<{ readonly agent: string; readonly revision: number }[]> {
  return reads.all`select agent, max(revision) as revision from held_turns group by agent order by agent`;
}

/** The oldest first. */
export async function heldTurnsOf(reads: Reads, agent: string, limit: number): Promise<HeldTurn[]> {
  const rows = await reads.all<HeldRow>`select work_id, agent, run_id, revision from held_turns
    where agent = ${agent} order by work_id limit ${limit}`;
  return rows.map((row) => ({ workId: row.work_id, agent: row.agent, runId: row.run_id, revision: row.revision }));
}

export async function removeHeldTurns(tx: Tx, workIds: readonly number[]): Promise<void> {
  await tx.run`delete from held_turns where work_id in ${list(workIds)}`;
}

/** Those whose work is gone, since somebody has stopped the turn. */
export async function removeOrphans(tx: Tx): Promise<number> {
  return tx.run`delete from held_turns where not exists (select 1 from work where work.id = held_turns.work_id)`;
}
