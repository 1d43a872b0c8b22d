import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { mayRead, mayWrite, noEntry } from "./access.ts";
import { lockHeads, MEMORY_OUTSIDE_RUN_MS } from "./heads.ts";
import type { PoolRegistry } from "./registry.ts";

/**
 * The version a reader of each key would see, null where there is none; for whoever decides by versions alone, so that no read is
 * recorded.
 */
export async function currentVersions(
  registry: PoolRegistry,
  reads: Reads,
  caller: Caller,
  pool: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, number | null>> {
  await refuseReader(registry, reads, caller, pool, keys);
  return versionsOf(reads, pool, keys);
}

/** The same, and the keys, also those that do not exist, stay as they are until the transaction ends. */
export async function heldVersions(
  store: Store,
  registry: PoolRegistry,
  tx: Tx,
  caller: Caller,
  pool: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, number | null>> {
  await refuseReader(registry, tx, caller, pool, keys);
  await lockHeads(
    store,
    tx,
    keys.map((key) => ({ pool, key })),
  );
  return versionsOf(tx, pool, keys);
}

async function refuseReader(registry: PoolRegistry, reads: Reads, caller: Caller, pool: string, keys: readonly string[]): Promise<void> {
  const { rules } = await registry.find(reads, caller, pool);
  for (const key of keys) if (!mayRead(caller, rules.of(key))) throw noEntry(pool, key);
}

async function versionsOf(reads: Reads, pool: string, keys: readonly string[]): Promise<ReadonlyMap<string, number | null>> {
  const rows = await reads.all<{ key: string; current_version: number }>`select key, current_version from pool_keys
    where pool = ${pool} and key in ${list(keys)} and current_version is not null and (expires_at is null or expires_at > now_ms())`;
  const found = new Map(rows.map((row) => [row.key, row.current_version]));
  return new Map(keys.map((key) => [key, found.get(key) ?? null]));
}

/** What the caller has read last in this run, and what it has written there itself. */
export async function seenVersions(reads: Reads, caller: Caller, pool: string, key: string): Promise<number[]> {
  const run = caller.run ?? "";
  const read = await reads.get<{ version: number }>`select version from pool_reads where pool = ${pool} and key = ${key}
    and agent = ${caller.name} and run = ${run} and shown = 0 order by last_at desc, id desc limit 1`;
  const written = await reads.get<{ version: number | null }>`select max(version) as version from pool_versions
    where pool = ${pool} and key = ${key} and agent = ${caller.name} and run = ${run}`;
  return [read?.version, written?.version].filter((version) => version != null);
}

/** Refuses whom a write to these keys would be refused to. */
export async function refuseWriter(
  registry: PoolRegistry,
  reads: Reads,
  caller: Caller,
  pool: string,
  keys: readonly string[],
): Promise<void> {
  const { row, rules } = await registry.find(reads, caller, pool);
  for (const key of keys) {
    if (!mayWrite(caller, rules.of(key)))
      throw new Failure("request.forbidden", `${caller.name} may not write "${key}" in the pool "${pool}"`, { details: { key } });
  }
  if (row.state !== "open") throw new Failure("pool.sealed", `the pool "${pool}" is ${row.state}`);
}

/** Whether what the caller writes now rests on input from outside. */
export async function hasReadExternal(reads: Reads, caller: Caller): Promise<boolean> {
  const run = caller.run ?? "";
  const row = await reads.get`select 1 from pool_reads where agent = ${caller.name} and run = ${run} and external = 1
    and (run <> '' or last_at >= now_ms() - ${MEMORY_OUTSIDE_RUN_MS}) limit 1`;
  return row !== undefined;
}
