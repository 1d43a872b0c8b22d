import type { Caller } from "../../kernel/caller.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";

/** Outside a turn nothing says where one piece of work ends; what was read this long ago counts as forgotten. */
export const MEMORY_OUTSIDE_RUN_MS = 3_600_000;

/** What a head says of the version it points to. */
export interface CurrentVersion {
  readonly version: number;
  readonly size: number;
  readonly agent: string;
}

export interface Head {
  readonly lastVersion: number;
  /** What the head points to, expired or not; undefined where there is no entry. */
  readonly stored: CurrentVersion | undefined;
  /** What a reader would see. */
  readonly current: CurrentVersion | undefined;
}

/** Everything a write decides on, locked until the transaction ends. */
export interface OpenedForWrite {
  readonly revision: number;
  readonly now: number;
  /** The newest read of this caller in this run. */
  readonly readMark: number;
  /** Whether it has read anything external. */
  readonly tainted: boolean;
  readonly heads: ReadonlyMap<string, Head>;
}

interface OpenedRow {
  readonly revision: number;
  readonly now: number;
  readonly read_mark: number | null;
  readonly tainted: number;
}

interface HeadRow {
  readonly last_version: number;
  readonly current_version: number | null;
  readonly expires_at: number | null;
  readonly size: number | null;
  readonly agent: string | null;
}

/** The order in which everybody locks. */
export function byName(a: { readonly pool: string; readonly key: string }, b: { readonly pool: string; readonly key: string }): number {
  if (a.pool !== b.pool) return a.pool < b.pool ? -1 : 1;
  return a.key === b.key ? 0 : a.key < b.key ? -1 : 1;
}

/** `keys` are sorted: whoever locks several does it in the same order as everybody else. */
export async function openForWrite(
  store: Store,
  tx: Tx,
  caller: Caller,
  pool: string,
  keys: readonly string[],
): Promise<OpenedForWrite | undefined> {
  return store.kind === "sqlite" ? openAlone(tx, caller, pool, keys) : openLocked(tx, caller, pool, keys);
}

/** One writer at a time: a single statement for each key, and no lock. Every column of an answer costs, so that there are few. */
async function openAlone(tx: Tx, caller: Caller, pool: string, keys: readonly string[]): Promise<OpenedForWrite | undefined> {
  const run = caller.run ?? "";
  const heads = new Map<string, Head>();
  let first: OpenedRow | undefined;
  for (const key of keys) {
    const row = await tx.get<OpenedRow & Partial<HeadRow>>`
      select p.revision, now_ms() as now, h.last_version, h.current_version, h.expires_at, h.size, h.agent,
        (select max(id) from pool_reads where agent = ${caller.name} and run = ${run}) as read_mark,
        exists (select 1 from pool_reads where agent = ${caller.name} and run = ${run} and external = 1
          and (run <> '' or last_at >= now_ms() - ${MEMORY_OUTSIDE_RUN_MS})) as tainted
      from pools p left join pool_keys h on h.pool = p.name and h.key = ${key} where p.name = ${pool}`;
    if (!row) return undefined;
    first ??= row;
    heads.set(key, headFrom(row, row.now));
  }
  return first && opened(first, heads);
}

/** The pool is locked against sealing, then each head against other writers. */
async function openLocked(tx: Tx, caller: Caller, pool: string, keys: readonly string[]): Promise<OpenedForWrite | undefined> {
  const run = caller.run ?? "";
  const row = await tx.get<OpenedRow>`
    select revision, now_ms() as now,
      (select max(id) from pool_reads where agent = ${caller.name} and run = ${run}) as read_mark,
      case when exists (select 1 from pool_reads where agent = ${caller.name} and run = ${run} and external = 1
        and (run <> '' or last_at >= now_ms() - ${MEMORY_OUTSIDE_RUN_MS})) then 1 else 0 end as tainted
    from pools where name = ${pool} for share`;
  if (!row) return undefined;
  const rows = new Map<string, HeadRow>();
  for (const key of keys) rows.set(key, await lockHead(tx, pool, key));
  // What was there when the asking began may have expired while others held it.
  const expiring = rows.values().some(({ expires_at }) => expires_at !== null);
  const now = expiring ? ((await tx.get<{ now: number }>`select now_ms() as now`)?.now ?? row.now) : row.now;
  const heads = new Map(rows.entries().map(([key, head]) => [key, headFrom(head, now)]));
  return opened({ ...row, now }, heads);
}

function opened(row: OpenedRow, heads: ReadonlyMap<string, Head>): OpenedForWrite {
  return { revision: row.revision, now: row.now, readMark: row.read_mark ?? 0, tainted: Boolean(row.tainted), heads };
}

/** Holds these keys still until the transaction ends, written or not. */
export async function lockHeads(store: Store, tx: Tx, keys: readonly { readonly pool: string; readonly key: string }[]): Promise<void> {
  if (store.kind === "sqlite") return;
  for (const { pool, key } of keys.toSorted(byName)) await lockHead(tx, pool, key);
}

/** Locks the head of a key, and makes it where there is none. For PostgreSQL: on SQLite a transaction is alone anyway. */
async function lockHead(tx: Tx, pool: string, key: string): Promise<HeadRow> {
  const find = (): Promise<HeadRow | undefined> =>
    tx.get<HeadRow>`select last_version, current_version, expires_at, size, agent from pool_keys
      where pool = ${pool} and key = ${key} for update`;
  const known = await find();
  if (known) return known;
  await tx.run`insert into pool_keys (pool, key, last_version) values (${pool}, ${key}, 0) on conflict (pool, key) do nothing`;
  return (await find()) as HeadRow;
}

function headFrom(row: Partial<HeadRow>, now: number): Head {
  const { current_version: version, expires_at, size, agent } = row;
  const stored = version == null ? undefined : { version, size: size ?? 0, agent: agent ?? "" };
  return { lastVersion: row.last_version ?? 0, stored, current: expires_at != null && expires_at <= now ? undefined : stored };
}
