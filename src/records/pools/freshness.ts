import type { Change } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { mayRead } from "./access.ts";
import { differences, overlapping } from "./differences.ts";
import { lockHeads, MEMORY_OUTSIDE_RUN_MS } from "./heads.ts";
import type { ReadLog } from "./read-log.ts";
import type { PoolRegistry } from "./registry.ts";
import { VERSION_COLUMNS, type VersionRow } from "./version-rows.ts";

const TOLD_AT_MOST = 20;
const CHANGES_AT_MOST = 20;

/** Something that was read and is no longer so. Values are shortened: it is meant for a model's context. */
export interface StaleRead {
  readonly pool: string;
  readonly key: string;
  /** The version that was read; 0: the key was not there. */
  readonly read: number;
  /** The version that is current now; null: there is none. */
  readonly current: number | null;
  readonly by: string | null;
  readonly note: string | null;
  /** What became of the version that was read. */
  readonly diff: readonly Change[];
  /** What the caller is about to write, against the version it read. */
  readonly yours?: readonly Change[];
  /** Paths that both touch: these need a decision. */
  readonly conflicts?: readonly string[];
}

export type Freshness =
  | { readonly fresh: true }
  | {
      readonly fresh: false;
      readonly stale: readonly StaleRead[];
      /** How many more there are than are told. */
      readonly more: number;
      /** Versions whose content is in the differences. */
      readonly shown: readonly { pool: string; key: string; version: number; external: boolean }[];
    };

export interface ProposedWrite {
  readonly pool: string;
  readonly key: string;
  readonly value?: unknown;
}

export interface LastRead {
  readonly pool: string;
  readonly key: string;
  readonly version: number;
}

/**
 * Is what this caller has read in this run still so? Of each key the last read counts. It is stale when somebody else wrote a
 * version after it that stands, or when it does not stand any more itself. The run's own writes upon it leave it fresh.
 */
export async function freshness(
  store: Store,
  registry: PoolRegistry,
  reads: Reads,
  caller: Caller,
  rests: readonly LastRead[],
  proposed: readonly ProposedWrite[] = [],
): Promise<Freshness> {
  const stale: StaleRead[] = [];
  const shown: { pool: string; key: string; version: number; external: boolean }[] = [];
  let more = 0;
  for (const read of rests) {
    const current = await standing(reads, read, caller);
    if (current === "fresh") continue;
    if (stale.length === TOLD_AT_MOST) {
      more++;
      continue;
    }
    const known = await registry.row(reads, read.pool);
    const visible = known && mayRead(caller, (await registry.rulesOf(reads, read.pool, known.revision)).of(read.key));
    if (!visible || !current) {
      stale.push({ ...read, read: read.version, current: null, by: null, note: null, diff: [] });
      continue;
    }
    const before = read.version === 0 ? undefined : await valueAt(store, reads, read);
    const { changes } = differences(before, await fullValue(store, reads, current), CHANGES_AT_MOST);
    const mine = proposed.find((write) => write.pool === read.pool && write.key === read.key && "value" in write);
    const yours = mine && differences(before, mine.value, CHANGES_AT_MOST).changes;
    stale.push({
      pool: read.pool,
      key: read.key,
      read: read.version,
      current: current.version,
      by: current.agent,
      note: current.note,
      diff: changes,
      ...(yours ? { yours, conflicts: overlapping(changes, yours) } : {}),
    });
    shown.push({ pool: read.pool, key: read.key, version: current.version, external: current.external === 1 });
  }
  return stale.length === 0 ? { fresh: true } : { fresh: false, stale: stale.map(plain), more, shown };
}

/** Stops the transaction unless everything is fresh, and keeps it so until the transaction ends: what was read, and what is to be written. */
export async function refuseStale(
  store: Store,
  registry: PoolRegistry,
  tx: Tx,
  caller: Caller,
  proposed: readonly ProposedWrite[],
  log?: ReadLog,
): Promise<void> {
  // Asked once: what is checked is what is held. What the run reads while this waits for a lock is no part of what it wrote.
  const rests = await lastReads(tx, caller, log);
  await lockHeads(store, tx, [...rests, ...proposed]);
  const answer = await freshness(store, registry, tx, caller, rests, proposed);
  if (answer.fresh) return;
  const names = answer.stale.map((one) => `"${one.key}"`).join(", ");
  throw new Failure("pool.stale", `what was read of ${names} has changed`, {
    details: { stale: answer.stale, more: answer.more, shown: answer.shown },
  });
}

function plain({ pool, key, read, current, by, note, diff, yours, conflicts }: StaleRead): StaleRead {
  return { pool, key, read, current, by, note, diff, ...(yours ? { yours } : {}), ...(conflicts ? { conflicts } : {}) };
}

/** What the caller's work rests on: of each key its last read, recorded or still in the log. */
export async function lastReads(reads: Reads, caller: Caller, log: ReadLog | undefined): Promise<LastRead[]> {
  const rows = await reads.all<LastRead>`select pool, key, version from pool_reads
    where agent = ${caller.name} and run = ${caller.run ?? ""} and shown = 0
      and (run <> '' or last_at >= now_ms() - ${MEMORY_OUTSIDE_RUN_MS}) order by last_at, id`;
  const last = new Map<string, LastRead>();
  for (const { pool, key, version, shown } of [...rows.map((row) => ({ ...row, shown: false })), ...(log?.pending ?? [])]) {
    if (!shown) last.set(JSON.stringify([pool, key]), { pool, key, version });
  }
  return [...last.values()];
}

type Placed = VersionRow & { readonly now: number; readonly last_version: number; readonly foreign: number; readonly withdrawn: number };

/** What is current instead; undefined: nothing is. */
async function standing(reads: Reads, read: LastRead, caller: Caller): Promise<"fresh" | VersionRow | undefined> {
  const run = caller.run ?? "";
  const row = await reads.get<Placed>`
    select h.last_version, now_ms() as now, v.pool, v.key, v.version, v.value, v.blob, v.size, v.agent, v.run, v.step, v.call, v.external,
      v.note, v.at, v.expires_at, v.seq, v.retracted_at, v.retracted_by, v.retract_reason,
      case when exists (select 1 from pool_versions w where w.pool = h.pool and w.key = h.key and w.version > ${read.version}
        and w.retracted_seq is null and not (w.agent = ${caller.name} and w.run = ${run})) then 1 else 0 end as "foreign",
      case when exists (select 1 from pool_versions w where w.pool = h.pool and w.key = h.key and w.version = ${read.version}
        and w.retracted_seq is not null) then 1 else 0 end as withdrawn
    from pool_keys h left join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
    where h.pool = ${read.pool} and h.key = ${read.key}`;
  const current = row && row.version !== null && (row.expires_at === null || row.expires_at > row.now) ? row : undefined;
  const isOwn = current !== undefined && current.agent === caller.name && current.run === run;
  if (read.version === 0) {
    if (!current) return "fresh";
    return isOwn && !(await hasReplacedUnseen(reads, current, caller)) ? "fresh" : current;
  }
  if (row?.withdrawn === 1) return current;
  if (row && row.foreign === 0 && (current?.version === read.version || isOwn)) return "fresh";
  // Its own delete leaves nothing, and that is what it expects.
  if (row && row.foreign === 0 && !current && row.last_version > read.version && row.version === null) return "fresh";
  return current;
}

/**
 * Whether the run, which had seen that there was nothing, has written over what somebody else had put there since. From its version
 * down to where there was nothing, everything must be its own.
 */
async function hasReplacedUnseen(reads: Reads, { pool, key, version }: VersionRow, caller: Caller): Promise<boolean> {
  const ended = sql`(w.value is null or w.expires_at <= (select n.at from pool_versions n where n.pool = w.pool and n.key = w.key
    and n.version > w.version and n.retracted_seq is null order by n.version limit 1))`;
  const below = await reads.get<{ ended: number }>`select case when ${ended} then 1 else 0 end as ended from pool_versions w
    where w.pool = ${pool} and w.key = ${key} and w.version < ${version} and w.retracted_seq is null
      and (${ended} or not (w.agent = ${caller.name} and w.run = ${caller.run ?? ""})) order by w.version desc limit 1`;
  return below?.ended === 0;
}

async function valueAt(store: Store, reads: Reads, { pool, key, version }: LastRead): Promise<unknown> {
  const row = await reads.get<VersionRow>`select ${VERSION_COLUMNS} from pool_versions v
    where v.pool = ${pool} and v.key = ${key} and v.version = ${version}`;
  return row && fullValue(store, reads, row);
}

const COMPARED_BYTES = 1_048_576;

/** Of a spilled value all of it, while that is worth comparing. */
export async function fullValue(store: Store, reads: Reads, row: VersionRow): Promise<unknown> {
  if (row.value === null) return undefined;
  const bytes = row.blob !== null && row.size <= COMPARED_BYTES ? await store.blobs.get(row.blob, reads) : undefined;
  return JSON.parse(bytes ? Buffer.from(bytes).toString("utf8") : row.value);
}
