import type { EntryHead } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { fullValue } from "./freshness.ts";
import type { PoolRegistry } from "./registry.ts";
import { headOf, LINEAGE_COLUMNS, VERSION_COLUMNS, type VersionRow } from "./version-rows.ts";

/** A current entry, as the gateway itself sees it. */
export interface CurrentValue {
  readonly version: number;
  /** In full, while it is not too large to be compared. */
  readonly value: unknown;
  readonly external: boolean;
  readonly author: string;
}

/** For whoever decides what happens next, and is no reader: nothing is recorded. Keys without an entry are not in it. */
export async function currentValues(store: Store, reads: Reads, pool: string, keys: readonly string[]): Promise<Map<string, CurrentValue>> {
  if (keys.length === 0) return new Map();
  const rows = await reads.all<VersionRow>`select ${VERSION_COLUMNS} from pool_keys h
    join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
    where h.pool = ${pool} and h.key in ${list(keys)} and (h.expires_at is null or h.expires_at > now_ms())`;
  const values = new Map<string, CurrentValue>();
  for (const row of rows)
    values.set(row.key, {
      version: row.version,
      value: await fullValue(store, reads, row),
      external: row.external === 1,
      author: row.agent,
    });
  return values;
}

export async function currentHeads(reads: Reads, pool: string, keys: readonly string[]): Promise<EntryHead[]> {
  const rows = await reads.all<VersionRow>`select ${LINEAGE_COLUMNS} from pool_keys h
    join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
    where h.pool = ${pool} and h.key in ${list(keys)} and (h.expires_at is null or h.expires_at > now_ms()) order by h.key`;
  return rows.map(headOf);
}

/** Those of the keys that the caller has written in its run. */
export async function writtenKeys(reads: Reads, caller: Caller, pool: string, keys: readonly string[]): Promise<Set<string>> {
  const rows = await reads.all<{ key: string }>`select distinct key from pool_versions
    where agent = ${caller.name} and run = ${caller.run ?? ""} and pool = ${pool} and key in ${list(keys)} and retracted_seq is null`;
  return new Set(rows.map(({ key }) => key));
}

/** What a write of the key would replace. */
export interface Replaced {
  readonly version: number;
  /** The turn that wrote it; null: nobody's turn. */
  readonly run: string | null;
  /** The version that the caller has read last in its run; null: none. */
  readonly read: number | null;
}

/** Keys without an entry are not in it. */
export async function whatIsReplaced(
  reads: Reads,
  caller: Caller,
  pool: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Replaced>> {
  const run = caller.run ?? "";
  const rows = await reads.all<{ key: string; version: number; run: string; read: number | null }>`
    select h.key, v.version, v.run, (select r.version from pool_reads r where r.pool = h.pool and r.key = h.key and r.agent = ${caller.name}
      and r.run = ${run} and r.shown = 0 order by r.last_at desc, r.id desc limit 1) as read
    from pool_keys h join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
    where h.pool = ${pool} and h.key in ${list(keys)} and (h.expires_at is null or h.expires_at > now_ms())`;
  return new Map(rows.map((row) => [row.key, { version: row.version, run: row.run === "" ? null : row.run, read: row.read }]));
}

/** What a value of a key must be. */
export interface KeyForm {
  /** Text alone is no value of it. */
  readonly isJson: boolean;
  readonly schema: unknown;
  /** A second write must say what it replaces. */
  readonly needsVersion: boolean;
}

export async function formsOf(
  registry: PoolRegistry,
  tx: Tx,
  caller: Caller,
  pool: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, KeyForm>> {
  const { rules } = await registry.find(tx, caller, pool);
  const written = new Map(Object.entries(rules.definition.keys ?? {}));
  return new Map(
    keys.map((key) => {
      const { policy, check } = rules.of(key);
      const isJson = check !== null || policy === "merge" || policy === "max" || policy === "min";
      return [key, { isJson, schema: written.get(key)?.schema, needsVersion: policy === "reject" }];
    }),
  );
}
