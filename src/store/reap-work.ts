import type { Tx } from "./engine.ts";
import { buryWork } from "./settle-work.ts";
import { list, sql } from "./sql.ts";
import { type Claim, claimedBy, type QueueParts, type TurnRow, tellOf } from "./work-items.ts";

/** `taken`: from whom, and how many. */
export interface Reaped {
  readonly revived: number;
  readonly buried: number;
  readonly taken: ReadonlyMap<string, number>;
}

const AT_ONCE = 1_000;
/** Asked once and not of every row: only so PostgreSQL, whose clock never stands still, can look it up in an index. */
const NOW = sql`(select now_ms())`;
const TURN = sql`state, kind, tenant, 0 as due_in`;

export async function reapWork(parts: QueueParts): Promise<Reaped> {
  const { engine, watch } = parts;
  const due = await engine.reads.get`select 1 from work where state = 'running' and lease_until <= ${NOW}
    union all select 1 from work where state = 'parked' and run_at <= ${NOW} limit 1`;
  if (!due) return { revived: 0, buried: 0, taken: new Map() };
  return engine.transact(
    "reap work",
    async (tx) => {
      const lost = await tx.all<{ id: number; owner: string; spent: number }>`
        select id, owner, case when attempts >= max_attempts then 1 else 0 end as spent from work
        where state = 'running' and lease_until <= ${NOW} order by id limit ${AT_ONCE} ${engine.dialect.skipLocked}`;
      const buried = lost.filter((row) => row.spent === 1).map((row) => row.id);
      await buryWork(tx, buried, "its owner disappeared on every attempt");
      const again = lost.filter((row) => row.spent === 0).map((row) => row.id);
      const revived = await tx.all<TurnRow>`update work set state = 'ready', owner = null, lease_until = null, run_at = now_ms()
        where id in ${list(again)} returning ${TURN}`;
      tellOf(watch, tx, revived);
      const woken = await wakeDue(parts, tx);
      const taken = new Map<string, number>();
      for (const { owner } of lost) taken.set(owner, (taken.get(owner) ?? 0) + 1);
      return { revived: revived.length + woken, buried: buried.length, taken };
    },
    "locked",
  );
}

/** Makes ready what was parked until now, and answers how many that were. Whoever holds one meanwhile decides what becomes of it. */
export async function wakeDue({ engine, order, watch }: QueueParts, tx: Tx): Promise<number> {
  const due = sql`select id from work where state = 'parked' and run_at <= ${NOW} order by run_at limit ${AT_ONCE} ${engine.dialect.skipLocked}`;
  const rows = await tx.all<TurnRow>`update work set state = 'ready', vtime = ${order.tagged}
    where id ${engine.dialect.amongFirst(due)} returning ${TURN}`;
  tellOf(watch, tx, rows);
  return rows.length;
}

export async function handBackWork({ watch }: QueueParts, tx: Tx, claims: readonly Claim[]): Promise<number> {
  const rows = await tx.all<TurnRow>`update work set state = 'ready', owner = null, lease_until = null, attempts = attempts - 1
    where state = 'running' and ${claimedBy(claims)} returning ${TURN}`;
  tellOf(watch, tx, rows);
  return rows.length;
}
