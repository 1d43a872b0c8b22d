import type { Caller } from "../../kernel/caller.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import type { PoolRow } from "./registry.ts";
import type { VersionRow } from "./version-rows.ts";

/** Outside a turn nothing says where one piece of work ends; what was read this long ago counts as forgotten. */
export const MEMORY_OUTSIDE_RUN_MS = 3_600_000;

export interface Head {
  readonly lastVersion: number;
  /** What the head points to, expired or not; undefined where there is no entry. */
  readonly stored: VersionRow | undefined;
  /** What a reader would see. */
  readonly current: VersionRow | undefined;
}

/** Everything a write decides on, locked until the transaction ends. */
export interface OpenedForWrite {
  readonly pool: PoolRow;
  readonly now: number;
  /** The newest read of this caller in this run. */
  readonly readMark: number;
  /** Whether it has read anything external. */
  readonly tainted: boolean;
  readonly heads: ReadonlyMap<string, Head>;
}

interface Standing {
  readonly now: number;
  readonly read_mark: number | null;
  readonly tainted: number;
}
type Joined = VersionRow &
  Standing & {
    readonly p_kind: PoolRow["kind"];
    readonly p_revision: number;
    readonly p_state: PoolRow["state"];
    readonly p_created_at: number;
    readonly p_sealed_at: number | null;
    readonly p_remove_at: number | null;
    readonly last_version: number | null;
  };

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

/** One writer at a time: a single statement for each key, and no lock. */
async function openAlone(tx: Tx, caller: Caller, pool: string, keys: readonly string[]): Promise<OpenedForWrite | undefined> {
  const run = caller.run ?? "";
  const heads = new Map<string, Head>();
  let first: Joined | undefined;
  for (const key of keys) {
    const row = await tx.get<Joined>`
      select p.kind as p_kind, p.revision as p_revision, p.state as p_state, p.created_at as p_created_at, p.sealed_at as p_sealed_at,
        p.remove_at as p_remove_at, now_ms() as now, h.last_version, v.pool, v.key, v.version, v.value, v.blob, v.size, v.agent, v.run,
        v.step, v.call, v.external, v.note, v.at, v.expires_at, v.seq, v.retracted_at, v.retracted_by, v.retract_reason,
        (select max(id) from pool_reads where agent = ${caller.name} and run = ${run}) as read_mark,
        exists (select 1 from pool_reads where agent = ${caller.name} and run = ${run} and external = 1
          and (run <> '' or last_at >= now_ms() - ${MEMORY_OUTSIDE_RUN_MS})) as tainted
      from pools p left join pool_keys h on h.pool = p.name and h.key = ${key}
        left join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
      where p.name = ${pool}`;
    if (!row) return undefined;
    first ??= row;
    heads.set(key, headFrom(row.last_version ?? 0, row.version === null ? undefined : row, row.now));
  }
  if (!first) return undefined;
  return {
    pool: {
      name: pool,
      kind: first.p_kind,
      revision: first.p_revision,
      state: first.p_state,
      created_at: first.p_created_at,
      sealed_at: first.p_sealed_at,
      remove_at: first.p_remove_at,
      now: first.now,
    },
    now: first.now,
    readMark: first.read_mark ?? 0,
    tainted: Boolean(first.tainted),
    heads,
  };
}

/**
 * The pool is locked against sealing, then each head against other writers. What a head points to is read in a statement of its
 * own: one that had to wait for the lock still sees the versions of before.
 */
async function openLocked(tx: Tx, caller: Caller, pool: string, keys: readonly string[]): Promise<OpenedForWrite | undefined> {
  const run = caller.run ?? "";
  const row = await tx.get<PoolRow & Standing>`
    select name, kind, revision, state, created_at, sealed_at, remove_at, now_ms() as now,
      (select max(id) from pool_reads where agent = ${caller.name} and run = ${run}) as read_mark,
      case when exists (select 1 from pool_reads where agent = ${caller.name} and run = ${run} and external = 1
        and (run <> '' or last_at >= now_ms() - ${MEMORY_OUTSIDE_RUN_MS})) then 1 else 0 end as tainted
    from pools where name = ${pool} for share`;
  if (!row) return undefined;
  const heads = new Map<string, Head>();
  let now = row.now;
  for (const key of keys) {
    const locked = await lockHead(tx, pool, key);
    const stored =
      locked.current_version === null
        ? undefined
        : await tx.get<VersionRow & { now: number }>`
            select pool, key, version, value, blob, size, agent, run, step, call, external, note, at, expires_at, seq, retracted_at,
              retracted_by, retract_reason, now_ms() as now
            from pool_versions where pool = ${pool} and key = ${key} and version = ${locked.current_version}`;
    now = Math.max(now, stored?.now ?? 0);
    heads.set(key, headFrom(locked.last_version, stored, now));
  }
  return { pool: row, now, readMark: row.read_mark ?? 0, tainted: row.tainted === 1, heads };
}

/** Holds these keys still until the transaction ends, written or not. */
export async function lockHeads(store: Store, tx: Tx, keys: readonly { readonly pool: string; readonly key: string }[]): Promise<void> {
  if (store.kind === "sqlite") return;
  for (const { pool, key } of keys.toSorted(byName)) await lockHead(tx, pool, key);
}

interface HeadRow {
  readonly last_version: number;
  readonly current_version: number | null;
}

/** Locks the head of a key, and makes it where there is none. For PostgreSQL: on SQLite a transaction is alone anyway. */
async function lockHead(tx: Tx, pool: string, key: string): Promise<HeadRow> {
  const find = (): Promise<HeadRow | undefined> =>
    tx.get<HeadRow>`select last_version, current_version from pool_keys where pool = ${pool} and key = ${key} for update`;
  const known = await find();
  if (known) return known;
  await tx.run`insert into pool_keys (pool, key, last_version) values (${pool}, ${key}, 0) on conflict (pool, key) do nothing`;
  return (await find()) as HeadRow;
}

function headFrom(lastVersion: number, stored: VersionRow | undefined, now: number): Head {
  const expired = stored !== undefined && stored.expires_at !== null && stored.expires_at <= now;
  return { lastVersion, stored, current: expired ? undefined : stored };
}
