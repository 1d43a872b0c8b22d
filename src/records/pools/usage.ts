import { Failure } from "../../kernel/failure.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import type { Quota } from "./rules.ts";

const WHOLE_POOL = "";

interface Amount {
  readonly bytes: number;
  readonly entries: number;
}

/** What an operation adds and frees, by author. */
export class UsageChange {
  readonly #byAgent = new Map<string, Amount>();

  add(agent: string, size: number): void {
    this.#count(agent, size, 1);
  }

  free(replaced: { readonly agent: string; readonly size: number } | undefined): void {
    if (replaced) this.#count(replaced.agent, -replaced.size, -1);
  }

  get amounts(): ReadonlyMap<string, Amount> {
    return this.#byAgent;
  }

  /** Changes that cancel out are no changes. */
  #count(agent: string, bytes: number, entries: number): void {
    const known = this.#byAgent.get(agent);
    const sum = known ? { bytes: known.bytes + bytes, entries: known.entries + entries } : { bytes, entries };
    if (sum.bytes === 0 && sum.entries === 0) this.#byAgent.delete(agent);
    else this.#byAgent.set(agent, sum);
  }
}

/**
 * Counts a change and refuses what exceeds the quota. The row of the whole pool is every writer's, so this comes last in its
 * transaction: on PostgreSQL it is held for the commit only.
 */
export async function countUsage(tx: Tx, pool: string, quota: Quota, change: UsageChange): Promise<void> {
  const { amounts } = change;
  const [only] = amounts;
  if (!only) return;
  if (amounts.size === 1) return countTogether(tx, pool, quota, ...only);
  const total = [...amounts.values()].reduce((sum, { bytes, entries }) => ({
    bytes: sum.bytes + bytes,
    entries: sum.entries + entries,
  }));
  if (total.bytes !== 0 || total.entries !== 0) await countOne(tx, pool, WHOLE_POOL, total, quota.bytes, quota.entries);
  for (const agent of [...amounts.keys()].sort())
    await countOne(tx, pool, agent, amounts.get(agent) as Amount, quota.agentBytes, quota.agentEntries);
}

/** The usual case, one author's change, in one statement for the pool and the author. */
async function countTogether(tx: Tx, pool: string, quota: Quota, agent: string, { bytes, entries }: Amount): Promise<void> {
  const changed = await tx.all<{
    agent: string;
  }>`update pool_usage set bytes = bytes + cast(${bytes} as bigint), entries = entries + cast(${entries} as bigint)
    where pool = ${pool} and agent in ('', ${agent})
      and (cast(${bytes} as bigint) <= 0 or bytes + cast(${bytes} as bigint) <= case agent when '' then cast(${quota.bytes} as bigint) else cast(${quota.agentBytes} as bigint) end)
      and (cast(${entries} as bigint) <= 0 or entries + cast(${entries} as bigint) <= case agent when '' then cast(${quota.entries} as bigint) else cast(${quota.agentEntries} as bigint) end)
    returning agent`;
  if (changed.length === 2) return;
  if (!changed.some((row) => row.agent === WHOLE_POOL)) throw full(pool, WHOLE_POOL);
  // The author's row is missing, or full, or was made by another writer while this one waited for the pool's: counting tells.
  await countOne(tx, pool, agent, { bytes, entries }, quota.agentBytes, quota.agentEntries);
}

async function countOne(tx: Tx, pool: string, agent: string, { bytes, entries }: Amount, maxBytes: number, maxEntries: number) {
  const row = await tx.get<Amount>`insert into pool_usage (pool, agent, bytes, entries) values (${pool}, ${agent}, ${bytes}, ${entries})
    on conflict (pool, agent) do update set bytes = pool_usage.bytes + excluded.bytes, entries = pool_usage.entries + excluded.entries
    returning bytes, entries`;
  const { bytes: held, entries: count } = row as Amount;
  if ((bytes > 0 && held > maxBytes) || (entries > 0 && count > maxEntries)) throw full(pool, agent);
}

function full(pool: string, agent: string): Failure {
  return agent === WHOLE_POOL
    ? new Failure("pool.full", `the pool "${pool}" is full`, { details: { pool } })
    : new Failure("pool.full", `${agent} has used up its share of the pool "${pool}"`, { details: { pool, agent } });
}

export async function readUsage(reads: Reads, pool: string): Promise<{ total: Amount; byAgent: Record<string, Amount> }> {
  const rows = await reads.all<
    Amount & { agent: string }
  >`select agent, bytes, entries from pool_usage where pool = ${pool} order by agent`;
  const amountOf = ({ bytes, entries }: Amount): Amount => ({ bytes, entries });
  const whole = rows.find((row) => row.agent === WHOLE_POOL);
  return {
    total: whole ? amountOf(whole) : { bytes: 0, entries: 0 },
    byAgent: Object.fromEntries(rows.filter((row) => row.agent !== WHOLE_POOL && row.entries > 0).map((row) => [row.agent, amountOf(row)])),
  };
}

/** For what is not anybody's wish to write, and so is counted but never refused. */
export const UNLIMITED: Quota = {
  bytes: Number.MAX_SAFE_INTEGER,
  entries: Number.MAX_SAFE_INTEGER,
  agentBytes: Number.MAX_SAFE_INTEGER,
  agentEntries: Number.MAX_SAFE_INTEGER,
};
