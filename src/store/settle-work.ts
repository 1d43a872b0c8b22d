import { jitteredBackoff } from "../kernel/random.ts";
import type { Tx } from "./engine.ts";
import { wholeMs } from "./keys.ts";
import { advanceLanes } from "./lanes.ts";
import { list } from "./sql.ts";
import { type Claim, claimedBy, type QueueParts, staleClaim, type TurnRow, tellOf } from "./work-items.ts";

interface LaneRow {
  readonly id: number;
  readonly lane: string | null;
}

interface CancelledRow extends LaneRow {
  readonly state: string;
}

const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 5 * 60_000;

export async function settleWork(parts: QueueParts, tx: Tx, claim: Claim): Promise<void> {
  parts.reached("queue.settle.before");
  const [settled] = await deleteClaimed(parts, tx, [claim]);
  if (settled === undefined) throw staleClaim(claim);
}

export async function settleAllWork(parts: QueueParts, claims: readonly Claim[]): Promise<Set<number>> {
  if (claims.length === 0) return new Set();
  const { engine, reached } = parts;
  reached("queue.settle.before");
  // Lane items are left to the slower path, which promotes their successors.
  const direct = await engine.single(
    "settle work",
    (tx) => tx.all<{ id: number }>`delete from work where state = 'running' and position is null and ${claimedBy(claims)} returning id`,
  );
  const settled = new Set(direct.map((row) => row.id));
  const rest = claims.filter((claim) => !settled.has(claim.id));
  if (rest.length > 0)
    for (const id of await engine.transact("settle lanes", (tx) => deleteClaimed(parts, tx, rest), "locked")) settled.add(id);
  return settled;
}

export async function retryWork(parts: QueueParts, tx: Tx, claim: Claim, error: string, delayMs?: number): Promise<"later" | "dead"> {
  const row = await tx.get<{ attempts: number; max_attempts: number }>`select attempts, max_attempts from work
    where id = ${claim.id} and fence = ${claim.fence} and state = 'running' ${parts.engine.dialect.forUpdate}`;
  if (!row) throw staleClaim(claim);
  if (row.attempts >= row.max_attempts) {
    await buryWork(tx, [claim.id], error);
    return "dead";
  }
  const delay = delayMs ?? jitteredBackoff(row.attempts, parts.random, BACKOFF_MS, BACKOFF_MAX_MS);
  await tx.run`update work set state = 'parked', owner = null, lease_until = null, error = ${error},
    run_at = now_ms() + cast(${wholeMs(delay)} as bigint) where id = ${claim.id}`;
  parts.watch.dueIn(delay);
  return "later";
}

/** To the dead letters. It keeps its lane: who comes next must not begin before somebody has written down what became of this one. */
export async function buryWork(tx: Tx, ids: readonly number[], error: string): Promise<void> {
  if (ids.length === 0) return;
  await tx.run`update work set state = 'dead', owner = null, lease_until = null, error = ${error} where id in ${list(ids)}`;
}

export async function parkWork({ watch }: QueueParts, tx: Tx, claim: Claim, maxMs: number): Promise<void> {
  const row =
    await tx.get<TurnRow>`update work set state = case when woken = 1 then 'ready' else 'parked' end, owner = null, lease_until = null,
      attempts = 0, run_at = case when woken = 1 then now_ms() else now_ms() + cast(${wholeMs(maxMs)} as bigint) end, woken = 0
    where id = ${claim.id} and fence = ${claim.fence} and state = 'running' returning state, kind, tenant, cast(${wholeMs(maxMs)} as bigint) as due_in`;
  if (!row) throw staleClaim(claim);
  tellOf(watch, tx, [row]);
}

export async function unparkWork({ order, watch }: QueueParts, tx: Tx, id: number): Promise<boolean> {
  const row = await tx.get<TurnRow>`update work set woken = case when state = 'running' then 1 else 0 end,
      state = case when state = 'parked' then 'ready' else state end, run_at = case when state = 'parked' then now_ms() else run_at end,
      vtime = case when state = 'parked' then ${order.tagged} else vtime end
    where id = ${id} and state in ('parked', 'running', 'ready') returning state, kind, tenant, 0 as due_in`;
  if (row) tellOf(watch, tx, [row]);
  return row !== undefined;
}

/** Answers which of them were still there. */
export async function cancelWork(parts: QueueParts, tx: Tx, ids: readonly number[]): Promise<Set<number>> {
  // Locked in one order, so that two who remove the same items do not wait for each other.
  if (ids.length > 1) await tx.all`select id from work where id in ${list(ids)} order by id ${parts.engine.dialect.forUpdate}`;
  const rows = await tx.all<CancelledRow>`delete from work where id in ${list(ids)} returning id, lane, state`;
  // Whoever runs it looks after its claims at once, on whatever node.
  if (rows.some(({ state }) => state === "running")) tx.hint("taken");
  await advance(parts, tx, rows);
  return new Set(rows.map((row) => row.id));
}

async function deleteClaimed(parts: QueueParts, tx: Tx, claims: readonly Claim[]): Promise<number[]> {
  const rows = await tx.all<LaneRow>`delete from work where state = 'running' and ${claimedBy(claims)} returning id, lane`;
  await advance(parts, tx, rows);
  return rows.map((row) => row.id);
}

async function advance({ engine, order, watch }: QueueParts, tx: Tx, left: readonly LaneRow[]): Promise<void> {
  const lanes = [...new Set(left.flatMap((row) => (row.lane === null ? [] : [row.lane])))];
  if (lanes.length === 0) return;
  tellOf(watch, tx, await advanceLanes(engine.dialect, tx, lanes, order.tagged));
}
