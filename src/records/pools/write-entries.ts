import { type Entry, MAX_BATCH } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { type Grant, mayWrite, noPool, refuseUndeclared } from "./access.ts";
import { conflict, conflictOf, type Decided, decideWrite, type PoolWrite } from "./decide-write.ts";
import { refuseStale } from "./freshness.ts";
import { type Head, type OpenedForWrite, openForWrite } from "./heads.ts";
import { buildsOnCurrent } from "./policies.ts";
import { isRecorded, type ReadLog, recordReads, type SeenVersion } from "./read-log.ts";
import type { PoolRegistry, PoolRevision } from "./registry.ts";
import { countUsage, UNLIMITED, UsageChange } from "./usage.ts";
import { previewOf } from "./values.ts";
import { entryOf, labelOf, VERSION_COLUMNS, type VersionRow } from "./version-rows.ts";

export interface WriteOptions {
  /** The caller acts on input from outside: what it writes is external. */
  readonly external?: boolean;
  /** What the run has read and not yet recorded; it is recorded here. */
  readonly reads?: ReadLog;
  /** Refuse when something this caller has read in this run was changed meanwhile. */
  readonly ifFresh?: boolean;
  readonly grant?: Grant;
  readonly causedBy?: number;
  /**
   * Whoever goes on with the transaction after a refusal: what the pool may hold is asked before anything is written. Elsewhere it comes last, since
   * the row that counts it is every writer's.
   */
  readonly goesOn?: true;
}

/**
 * All of the writes or none, as one event; the entries in the order of the writes, a removed key's is its tombstone. Everything is
 * decided before anything is written, so that a refusal leaves nothing to be taken back, except for what the pool may hold (`goesOn`). Locks: pool, heads
 * by key, usage.
 */
export async function writeEntries(
  store: Store,
  registry: PoolRegistry,
  tx: Tx,
  caller: Caller,
  name: string,
  writes: readonly PoolWrite[],
  options: WriteOptions,
): Promise<Entry[]> {
  const keys = distinctKeys(writes);
  // First of all: it locks what was read together with what is written, in one order.
  if (options.ifFresh)
    await refuseStale(
      store,
      registry,
      tx,
      caller,
      writes.map((write) => ({ pool: name, ...write })),
      options.reads,
    );
  const opened = await openForWrite(store, tx, caller, name, keys);
  if (!opened) throw noPool(name);
  const pool = registry.remembered(name, opened.revision) ?? (await registry.revisionOf(tx, name, opened.revision));
  const { rules } = pool;
  refuseCaller(caller, registry, name, pool, opened.now, keys, options.grant);
  const tainted = options.external === true || opened.tainted || options.reads?.sawExternal === true;
  const decided: Decided[] = [];
  for (const write of writes) {
    const head = opened.heads.get(write.key);
    if (!head) throw new Failure("internal.bug", `the head of "${write.key}" was not opened`);
    const key = rules.of(write.key);
    const why = conflictOf(write, key, head);
    if (why !== undefined) throw conflict(name, write.key, await currentRow(tx, name, write.key, head), why);
    const base = buildsOnCurrent(key.policy) ? await baseOf(store, tx, name, write.key, head) : undefined;
    decided.push(decideWrite(caller, name, write, key, head, tainted, base));
  }
  const flushes = options.reads !== undefined && options.reads.pending.length > 0;
  if (flushes) await options.reads?.flushIn(tx, caller);
  const readMark = flushes ? await newestRead(tx, caller) : opened.readMark;
  const count = (): Promise<void> =>
    countUsage(tx, name, decided.some(({ write }) => write.instead) ? UNLIMITED : rules.quota, usageOf(caller, decided));
  if (options.goesOn) await count();
  const rows = await apply(store, tx, caller, name, opened, decided, readMark, options.causedBy ?? null);
  if (!options.goesOn) await count();
  return rows.map(entryOf);
}

function usageOf(caller: Caller, decided: readonly Decided[]): UsageChange {
  const usage = new UsageChange();
  for (const { outcome, head, stored } of decided) {
    if (outcome !== "same") usage.free(head.stored);
    if (outcome === "put") usage.add(caller.name, stored?.size ?? 0);
  }
  return usage;
}

function distinctKeys(writes: readonly PoolWrite[]): string[] {
  if (writes.length === 0 || writes.length > MAX_BATCH)
    throw new Failure("request.malformed", `expected 1 to ${MAX_BATCH} writes, found ${writes.length}`);
  if (writes.length === 1) return [(writes[0] as PoolWrite).key];
  const keys = [...new Set(writes.map((write) => write.key))].sort();
  if (keys.length < writes.length) throw new Failure("request.malformed", "one operation writes each key at most once");
  return keys;
}

function refuseCaller(
  caller: Caller,
  registry: PoolRegistry,
  name: string,
  pool: PoolRevision,
  now: number,
  keys: readonly string[],
  grant: Grant | undefined,
): void {
  if (!registry.isOpenTo(caller, pool, pool.rules, now)) throw noPool(name);
  for (const key of keys) {
    if (!mayWrite(caller, pool.rules.of(key)))
      throw new Failure("request.forbidden", `${caller.name} may not write "${key}" in the pool "${name}"`, { details: { key } });
    refuseUndeclared(grant, "writes", key);
  }
  if (pool.state !== "open") throw new Failure("pool.sealed", `the pool "${name}" is ${pool.state}`);
}

async function currentRow(tx: Tx, pool: string, key: string, { current }: Head): Promise<VersionRow | undefined> {
  if (!current) return undefined;
  return tx.get<VersionRow>`select ${VERSION_COLUMNS} from pool_versions v
    where v.pool = ${pool} and v.key = ${key} and v.version = ${current.version}`;
}

async function baseOf(store: Store, tx: Tx, pool: string, key: string, head: Head) {
  const row = await currentRow(tx, pool, key, head);
  if (!row) return undefined;
  const bytes = row.blob === null ? undefined : await store.blobs.get(row.blob, tx);
  return { row, value: JSON.parse(bytes ? Buffer.from(bytes).toString("utf8") : (row.value ?? "null")) as unknown };
}

async function newestRead(tx: Tx, caller: Caller): Promise<number> {
  const row = await tx.get<{ mark: number | null }>`select max(id) as mark from pool_reads
    where agent = ${caller.name} and run = ${caller.run ?? ""}`;
  return row?.mark ?? 0;
}

async function apply(
  store: Store,
  tx: Tx,
  caller: Caller,
  name: string,
  opened: OpenedForWrite,
  decided: readonly Decided[],
  readMark: number,
  causedBy: number | null,
): Promise<VersionRow[]> {
  const changing = decided.filter((one) => one.outcome !== "same");
  const subject = ["pool", name];
  let seq = 0;
  if (changing.length > 0) {
    const type = changing.every((one) => one.outcome === "remove") ? "pool.deleted" : "pool.written";
    [seq = 0] = await store.ledger.append(tx, { type, actor: caller.name, subject, causedBy, data: { keys: changing.map(told) } });
  }
  const rows: VersionRow[] = [];
  const combined: Omit<SeenVersion, "shown">[] = [];
  for (const one of decided) {
    const row =
      one.outcome === "same" ? (one.base as VersionRow) : await addVersion(store, tx, caller, name, opened.now, one, seq, readMark);
    // The answer shows what others wrote: that is a read.
    if (one.base) combined.push({ pool: name, key: row.key, version: row.version, external: row.external === 1 });
    rows.push(row);
  }
  if (combined.length > 0 && isRecorded(caller)) await recordCombined(tx, caller, name, combined);
  const endorsed = changing.filter((one) => one.endorsed);
  if (endorsed.length > 0)
    await store.ledger.append(tx, {
      type: "pool.endorsed",
      actor: caller.name,
      subject,
      causedBy: seq,
      data: { keys: endorsed.map(told), rule: true },
    });
  return rows;
}

/**
 * Whoever only adds to what others write needs not know what that is: work of a run rests on the answer where it had read the key before, and then
 * on this version. Otherwise all who add to one list at the same time would make one another stale.
 */
async function recordCombined(tx: Tx, caller: Caller, pool: string, seen: readonly Omit<SeenVersion, "shown">[]): Promise<void> {
  const { name, run } = caller;
  // Outside of a run nobody settles on what it has read, and the reads of a guest may be very many.
  const rows =
    run === null
      ? seen
      : await tx.all<{ key: string }>`select distinct key from pool_reads where agent = ${name} and run = ${run} and pool = ${pool}
        and shown = 0 and key in ${list(seen.map(({ key }) => key))}`;
  const read = new Set(rows.map(({ key }) => key));
  await recordReads(
    tx,
    caller,
    seen.map((one) => ({ ...one, shown: !read.has(one.key) })),
  );
}

function told({ write, head, outcome, stored, external }: Decided) {
  const version = head.lastVersion + 1;
  if (outcome === "remove") return { key: write.key, version, deleted: true };
  return { key: write.key, version, size: stored?.size ?? 0, label: labelOf(external) };
}

async function addVersion(
  store: Store,
  tx: Tx,
  caller: Caller,
  pool: string,
  now: number,
  { write, head, stored, spills, base, external, ttlMs }: Decided,
  seq: number,
  readMark: number,
): Promise<VersionRow> {
  const blob = stored && spills ? await store.blobs.put(tx, ["pool", pool], Buffer.from(stored.text)) : null;
  const row: VersionRow = {
    pool,
    key: write.key,
    version: head.lastVersion + 1,
    value: stored && blob !== null ? JSON.stringify(previewOf(stored, blob)) : (stored?.text ?? null),
    blob,
    size: stored?.size ?? 0,
    agent: caller.name,
    run: caller.run ?? "",
    step: caller.step,
    call: caller.call,
    external: external ? 1 : 0,
    note: write.note ?? null,
    at: now,
    expires_at: stored && ttlMs !== null ? now + ttlMs : null,
    seq,
    retracted_at: null,
    retracted_by: null,
    retract_reason: null,
  };
  await insertVersion(tx, row, readMark, base?.version ?? null);
  const [current, size, agent] = stored ? [row.version, row.size, row.agent] : [null, null, null];
  await tx.run`insert into pool_keys (pool, key, last_version, current_version, expires_at, size, agent)
    values (${row.pool}, ${row.key}, ${row.version}, ${current}, ${row.expires_at}, ${size}, ${agent})
    on conflict (pool, key) do update set last_version = excluded.last_version, current_version = excluded.current_version,
      expires_at = excluded.expires_at, size = excluded.size, agent = excluded.agent`;
  return row;
}

export async function insertVersion(tx: Tx, row: VersionRow, readMark: number, baseVersion: number | null): Promise<void> {
  await tx.run`insert into pool_versions (pool, key, version, value, blob, size, agent, run, step, call, external, note, at, expires_at, seq,
      read_mark, base_version)
    values (${row.pool}, ${row.key}, ${row.version}, ${row.value}, ${row.blob}, ${row.size}, ${row.agent}, ${row.run}, ${row.step},
      ${row.call}, ${row.external}, ${row.note}, ${row.at}, ${row.expires_at}, ${row.seq}, ${readMark}, ${baseVersion})`;
}
