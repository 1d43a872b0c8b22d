import type { Reads } from "./engine.ts";
import { list } from "./sql.ts";

/** What there is of one kind, in one state, with one owner. */
export interface WorkCount {
  readonly kind: string;
  readonly state: "queued" | "ready" | "running" | "parked" | "dead";
  readonly owner: string | null;
  readonly count: number;
  /** Since when the first of them has been due. */
  readonly since: number;
  /** When the last of their leases ends; null: they have none. */
  readonly until: number | null;
}

/** All work there is, counted in one pass: a row for each kind, state and owner, however much waits. */
export async function countWork(reads: Reads): Promise<WorkCount[]> {
  return reads.all<WorkCount>`select kind, state, owner, count(*) as count, min(run_at) as since, max(lease_until) as until
    from work group by kind, state, owner order by kind, state, owner`;
}

/** How much each of these owners holds now. Whoever holds nothing is not among them. */
export async function heldBy(reads: Reads, owners: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await reads.all<{ owner: string; count: number }>`select owner, count(*) as count from work
    where state = 'running' and owner in ${list(owners)} group by owner`;
  return new Map(rows.map(({ owner, count }) => [owner, count]));
}
