import type { Tx } from "../../store/engine.ts";
import { list, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { lockHeads } from "./heads.ts";
import { countUsage, UNLIMITED, UsageChange } from "./usage.ts";
import { VERSION_COLUMNS, type VersionRow } from "./version-rows.ts";
import { insertVersion } from "./write-entries.ts";

const EXPIRED_AT_ONCE = 200;
const POOLS_AT_ONCE = 5;
const KEYS_AT_ONCE = 50;
const READS_AT_ONCE = 1_000;
const GATEWAY = "guildhall";

/** For the pulse: whether the time of an entry is over, or of a whole pool. */
export const POOLS_DUE = sql`(select min(expires_at) from pool_keys where expires_at is not null) <= now_ms()
  or (select min(remove_at) from pools where remove_at is not null) <= now_ms()`;

/** Leaves a tombstone where an entry's time is over; readers have not seen it since. Answers how many. */
export async function sweepExpired(store: Store): Promise<number> {
  const due = await store.read.all<{ pool: string; key: string }>`select pool, key from pool_keys
    where expires_at is not null and expires_at <= now_ms() order by expires_at limit ${EXPIRED_AT_ONCE}`;
  let expired = 0;
  for (const [pool, keys] of Map.groupBy(due, (row) => row.pool)) {
    expired += await store.transact("expire entries", (tx) => expire(store, tx, pool, keys), "locked");
  }
  return expired;
}

type Due = VersionRow & { readonly last_version: number; readonly now: number };

async function expire(store: Store, tx: Tx, pool: string, keys: readonly { pool: string; key: string }[]): Promise<number> {
  // Another node may be removing the pool: locking a head that is gone would make it anew, and leave it behind.
  if (store.kind === "postgres" && !(await tx.get`select 1 from pools where name = ${pool} for share`)) return 0;
  await lockHeads(store, tx, keys);
  const due: Due[] = [];
  for (const { key } of keys) {
    // Somebody may have written it, or swept it, since.
    const row = await tx.get<Due>`select ${VERSION_COLUMNS}, h.last_version, now_ms() as now from pool_keys h
      join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
      where h.pool = ${pool} and h.key = ${key} and h.expires_at <= now_ms()`;
    if (row) due.push(row);
  }
  if (due.length === 0) return 0;
  const [seq = 0] = await store.ledger.append(tx, {
    type: "pool.expired",
    actor: GATEWAY,
    subject: ["pool", pool],
    data: { keys: due.map((row) => ({ key: row.key, version: row.last_version + 1, deleted: true })) },
  });
  const usage = new UsageChange();
  for (const row of due) {
    const version = row.last_version + 1;
    const nobody = { agent: GATEWAY, run: "", step: null, call: null, note: null };
    const tombstone = { ...row, ...nobody, version, value: null, blob: null, size: 0, external: 0, at: row.now, expires_at: null, seq };
    await insertVersion(tx, tombstone, 0, null);
    await tx.run`update pool_keys set last_version = ${version}, current_version = null, expires_at = null, size = null, agent = null
      where pool = ${pool} and key = ${row.key}`;
    usage.free(row);
  }
  await countUsage(tx, pool, UNLIMITED, usage);
  return due.length;
}

/** Removes pools of runs whose retention is over, a bounded piece at a time; nobody has seen them since. Answers how many are gone. */
export async function sweepRemoved(store: Store): Promise<number> {
  const due = await store.read.all<{ name: string }>`select name from pools
    where remove_at is not null and remove_at <= now_ms() order by remove_at limit ${POOLS_AT_ONCE}`;
  let removed = 0;
  for (const { name } of due) if (await store.transact("remove pool", (tx) => removePiece(store, tx, name), "locked")) removed++;
  return removed;
}

async function removePiece(store: Store, tx: Tx, name: string): Promise<boolean> {
  const known = await tx.get`select 1 from pools where name = ${name} ${store.dialect.forUpdate}`;
  if (!known) return false;
  await tx.run`delete from pool_versions where pool = ${name} and key in (select key from pool_keys where pool = ${name} order by key limit ${KEYS_AT_ONCE})`;
  const keys =
    await tx.run`delete from pool_keys where pool = ${name} and key in (select key from pool_keys where pool = ${name} order by key limit ${KEYS_AT_ONCE})`;
  const reads = await forgetReads(tx, name);
  if (keys === KEYS_AT_ONCE || reads === READS_AT_ONCE) return false;
  await tx.run`delete from pool_usage where pool = ${name}`;
  await store.blobs.release(tx, ["pool", name]);
  await tx.run`delete from pools where name = ${name}`;
  await store.ledger.append(tx, { type: "pool.removed", actor: GATEWAY, subject: ["pool", name], data: {} });
  return true;
}

/** Who has read something external goes on having read it: of all such reads one row for each reader and run is left. */
async function forgetReads(tx: Tx, pool: string): Promise<number> {
  const some = await tx.all<{ id: number }>`select id from pool_reads where pool = ${pool} order by id limit ${READS_AT_ONCE}`;
  if (some.length === 0) return 0;
  const ids = list(some.map(({ id }) => id));
  await tx.run`insert into pool_reads (pool, key, version, agent, run, step, external, shown, first_at, last_at)
    select '', '', 0, agent, run, null, 1, 1, min(first_at), max(last_at) from pool_reads where external = 1 and id in ${ids}
    group by agent, run order by agent, run
    on conflict (pool, key, version, agent, run) do update
    set last_at = case when excluded.last_at > pool_reads.last_at then excluded.last_at else pool_reads.last_at end`;
  return tx.run`delete from pool_reads where id in ${ids}`;
}
