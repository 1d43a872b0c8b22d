import type { Difference, Entry, EntryHistory, EntryList, EntryReader, PoolSnapshot } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Store } from "../../store/store.ts";
import { type Grant, mayRead, noEntry, noPool, noVersion, refuseUndeclared } from "./access.ts";
import { differences } from "./differences.ts";
import { fullValue } from "./freshness.ts";
import { isRecorded, type ReadLog, recordReads, type SeenVersion } from "./read-log.ts";
import type { ReadRecorder } from "./read-recorder.ts";
import type { PoolRegistry } from "./registry.ts";
import { entryOf, headOf, LINEAGE_COLUMNS, type StandingVersion, standingEntry, VERSION_COLUMNS, type VersionRow } from "./version-rows.ts";

export interface ReadOptions {
  /** Where a run collects what it reads; without it a read is recorded at once. */
  readonly reads?: ReadLog;
  readonly grant?: Grant;
  /** An older version, also one that was retracted or has expired. */
  readonly version?: number | undefined;
  /** All of a spilled value. */
  readonly full?: boolean | undefined;
}

export interface PageOptions {
  readonly prefix?: string | undefined;
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

const PAGE = 100;
const HORIZON_MS = 2_000;
const READERS = 1_000;

/** What a current version has: its pool and key are known, and it is not retracted. */
type Current = StandingVersion & { readonly revision: number; readonly now: number };

/** Reading entries: checked, and recorded before the answer is given. */
export class EntryReads {
  readonly #store: Store;
  readonly #registry: PoolRegistry;
  readonly #recorder: ReadRecorder;

  constructor(store: Store, registry: PoolRegistry, recorder: ReadRecorder) {
    this.#store = store;
    this.#registry = registry;
    this.#recorder = recorder;
  }

  /** Undefined where there is none, or none for this caller. */
  async read(caller: Caller, pool: string, key: string, options: ReadOptions = {}): Promise<Entry | undefined> {
    refuseUndeclared(options.grant, "reads", key);
    if (options.version !== undefined) return this.#readVersion(caller, pool, key, options.version, options);
    // Every column of an answer costs, so that there are few; and so does the clock, which is asked only where something hangs on it.
    const row = await this.#store.read.get<Current>`
      select p.revision, v.version, v.value, v.blob, v.size, v.agent, v.run, v.step, v.call, v.external, v.note, v.at, v.expires_at, v.seq,
        case when ${isRecorded(caller) ? 1 : 0} = 1 or v.expires_at is not null then now_ms() else 0 end as now
      from pools p left join pool_keys h on h.pool = p.name and h.key = ${key}
        left join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
      where p.name = ${pool}`;
    if (!row) throw noPool(pool);
    const { revision, now } = row;
    const known = this.#registry.remembered(pool, revision) ?? (await this.#registry.revisionOf(this.#store.read, pool, revision));
    // A pool that will be removed is rare enough to be asked for once more.
    if (known.remove_at !== null) await this.#registry.find(this.#store.read, caller, pool);
    if (!this.#registry.isOpenTo(caller, known, known.rules, 0)) throw noPool(pool);
    if (!mayRead(caller, known.rules.of(key))) return undefined;
    if (row.version === null || (row.expires_at !== null && row.expires_at <= now)) {
      const absent = { pool, key, version: 0, external: false, shown: false };
      // In a turn the absence is what it decides on. Elsewhere it counts where it takes the place of what was read there before.
      const replaces = !options.reads && isRecorded(caller) && (await this.#lastRead(caller, pool, key)) > 0;
      if (replaces) await this.#store.transact("record reads", (tx) => recordReads(tx, caller, [absent]), "locked");
      else if (options.reads || caller.run !== null) await this.#recorder.record(caller, [absent], now, options.reads);
      return undefined;
    }
    const read = { pool, key, version: row.version, external: row.external === 1, shown: false };
    if (!this.#recorder.isKnown(caller, read, now, options.reads)) await this.#recorder.record(caller, [read], now, options.reads);
    const entry = standingEntry(pool, key, row);
    return options.full && row.blob !== null ? this.#whole(entry, row.blob) : entry;
  }

  async list(caller: Caller, pool: string, options: PageOptions = {}): Promise<EntryList> {
    const known = await this.#registry.find(this.#store.read, caller, pool);
    const isReadable = (row: VersionRow): boolean => mayRead(caller, known.rules.of(row.key));
    const { rows, next } = await readablePage(options, isReadable, (after, most) => {
      return this.#store.read.all<VersionRow>`
      select ${LINEAGE_COLUMNS} from pool_keys h join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = h.current_version
      where h.pool = ${pool} and h.current_version is not null and h.key > ${after} and h.key >= ${options.prefix ?? ""}
        and h.key < ${upperBound(options.prefix)} and (h.expires_at is null or h.expires_at > now_ms())
      order by h.key limit ${most}`;
    });
    return { entries: rows.map(headOf), next };
  }

  /** By rising version, tombstones and retracted versions included. */
  async history(
    caller: Caller,
    pool: string,
    key: string,
    options: { after?: number | undefined; limit?: number | undefined; reads?: ReadLog } = {},
  ): Promise<EntryHistory> {
    const now = await this.#readable(caller, pool, key);
    const limit = options.limit ?? PAGE;
    const rows = await this.#store.read.all<VersionRow>`select ${VERSION_COLUMNS} from pool_versions v
      where v.pool = ${pool} and v.key = ${key} and v.version > ${options.after ?? 0} order by v.version limit ${limit + 1}`;
    if (rows.length === 0 && (options.after ?? 0) === 0) throw noEntry(pool, key);
    const page = rows.slice(0, limit);
    await this.#recorder.record(caller, page.filter((row) => row.value !== null || row.external === 1).map(seen), now, options.reads);
    return { entries: page.map(entryOf), next: rows.length > limit ? (page.at(-1)?.version ?? null) : null };
  }

  async difference(caller: Caller, pool: string, key: string, from: number, to: number, log?: ReadLog): Promise<Difference> {
    const now = await this.#readable(caller, pool, key);
    const [before, after] = [await this.version(pool, key, from), await this.version(pool, key, to)];
    await this.#recorder.record(caller, [before, after].filter((row) => row.value !== null).map(seen), now, log);
    const reads = this.#store.read;
    const { changes, truncated } = differences(await fullValue(this.#store, reads, before), await fullValue(this.#store, reads, after));
    return { from: headOf(before), to: headOf(after), changes: [...changes], truncated };
  }

  /** Who has read which version, first readers first. */
  async readers(caller: Caller, pool: string, key: string, version?: number): Promise<EntryReader[]> {
    await this.#readable(caller, pool, key);
    if (version === undefined) await this.#existing(pool, key);
    const only = version ?? 0;
    const rows = await this.#store.read.all<{ agent: string; run: string; version: number; at: number }>`
      select agent, run, version, first_at as at from pool_reads
      where pool = ${pool} and key = ${key} and version > 0 and shown = 0 and (version = ${only} or ${only} = 0) order by id limit ${READERS}`;
    return rows.map((row) => ({ agent: row.agent, run: row.run === "" ? null : row.run, version: row.version, at: row.at }));
  }

  /** Every entry as it was when this event had happened, and nothing of a later one. */
  async snapshot(
    caller: Caller,
    pool: string,
    options: PageOptions & { at?: number | undefined; reads?: ReadLog } = {},
  ): Promise<PoolSnapshot> {
    const at = await this.#reachable(options.at);
    const known = await this.#registry.find(this.#store.read, caller, pool);
    const moment = await this.#store.read.get<{ at: number }>`select at from ledger where seq <= ${at} order by seq desc limit 1`;
    // An entry may expire without an event: the newest moment is now, an older one is that of its event.
    const time = options.at === undefined ? known.row.now : (moment?.at ?? 0);
    const isReadable = (row: VersionRow): boolean => mayRead(caller, known.rules.of(row.key));
    const { rows, next } = await readablePage(options, isReadable, (after, most) => {
      return this.#store.read.all<VersionRow>`
      select ${VERSION_COLUMNS} from pool_keys h join pool_versions v on v.pool = h.pool and v.key = h.key and v.version = (
        select w.version from pool_versions w where w.pool = h.pool and w.key = h.key and w.seq <= ${at}
          and (w.retracted_seq is null or w.retracted_seq > ${at}) order by w.version desc limit 1)
      where h.pool = ${pool} and h.key > ${after} and h.key >= ${options.prefix ?? ""} and h.key < ${upperBound(options.prefix)}
        and v.value is not null and (v.expires_at is null or v.expires_at > ${time})
      order by h.key limit ${most}`;
    });
    await this.#recorder.record(caller, rows.map(seen), known.row.now, options.reads);
    return { at, entries: rows.map(entryOf), next };
  }

  /** One version's row, whoever may see it. */
  async version(pool: string, key: string, version: number): Promise<VersionRow> {
    const row = await this.#store.read.get<VersionRow>`select ${VERSION_COLUMNS} from pool_versions v
      where v.pool = ${pool} and v.key = ${key} and v.version = ${version}`;
    if (!row) throw noVersion(pool, key, version);
    return row;
  }

  async #readVersion(caller: Caller, pool: string, key: string, version: number, options: ReadOptions): Promise<Entry | undefined> {
    const known = await this.#registry.find(this.#store.read, caller, pool);
    if (!mayRead(caller, known.rules.of(key))) throw noVersion(pool, key, version);
    const row = await this.version(pool, key, version);
    if (row.value === null) throw noVersion(pool, key, version);
    await this.#recorder.record(caller, [seen(row)], known.row.now, options.reads);
    return options.full && row.blob !== null ? this.#whole(entryOf(row), row.blob) : entryOf(row);
  }

  async #whole(entry: Entry, blob: string): Promise<Entry> {
    const bytes = await this.#store.blobs.get(blob);
    return bytes ? { ...entry, value: JSON.parse(Buffer.from(bytes).toString("utf8")) } : entry;
  }

  /** The version this caller has read last; 0: none, or that there is none. */
  async #lastRead(caller: Caller, pool: string, key: string): Promise<number> {
    const row = await this.#store.read.get<{ version: number }>`select version from pool_reads where pool = ${pool} and key = ${key}
      and agent = ${caller.name} and run = ${caller.run ?? ""} and shown = 0 order by last_at desc, id desc limit 1`;
    return row?.version ?? 0;
  }

  /** Refuses as if there were nothing; answers the database's time. */
  async #readable(caller: Caller, pool: string, key: string): Promise<number> {
    const known = await this.#registry.find(this.#store.read, caller, pool);
    if (!mayRead(caller, known.rules.of(key))) throw noEntry(pool, key);
    return known.row.now;
  }

  async #existing(pool: string, key: string): Promise<void> {
    const row = await this.#store.read.get`select 1 from pool_keys where pool = ${pool} and key = ${key} and last_version > 0`;
    if (!row) throw noEntry(pool, key);
  }

  /** An event that was just committed may lie above the horizon while older ones are under way: they are waited for. */
  async #reachable(at: number | undefined): Promise<number> {
    const deadline = performance.now() + HORIZON_MS;
    for (;;) {
      const seen = this.#store.wake.version("ledger");
      const horizon = await this.#store.ledger.horizon();
      if (at === undefined || at <= horizon) return at ?? horizon;
      if (performance.now() > deadline) throw new Failure("request.malformed", `at: there is no event ${at} yet`);
      await this.#store.wake.wait("ledger", seen, 20, AbortSignal.timeout(HORIZON_MS));
    }
  }
}

/** Of a tombstone there is only the note to be seen. */
function seen(row: VersionRow): SeenVersion {
  return { pool: row.pool, key: row.key, version: row.version, external: row.external === 1, shown: row.value === null };
}

/** The first rows that the caller may read. Its cursor is the last of them: one of any other key would tell of a name that is not there for it. */
async function readablePage(
  { after, limit = PAGE }: PageOptions,
  isReadable: (row: VersionRow) => boolean,
  rowsAfter: (key: string, most: number) => Promise<VersionRow[]>,
): Promise<{ readonly rows: readonly VersionRow[]; readonly next: string | null }> {
  const found: VersionRow[] = [];
  for (let from = after ?? ""; ; ) {
    const rows = await rowsAfter(from, limit + 1);
    found.push(...rows.filter(isReadable));
    if (rows.length <= limit || found.length > limit) break;
    from = (rows.at(-1) as VersionRow).key;
  }
  const rows = found.slice(0, limit);
  return { rows, next: found.length > limit ? (rows.at(-1)?.key ?? null) : null };
}

/** Above every key that begins with the prefix. */
function upperBound(prefix: string | undefined): string {
  return `${prefix ?? ""}\u{10FFFF}`;
}
