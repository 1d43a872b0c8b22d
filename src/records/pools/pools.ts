import type {
  Blame,
  Difference,
  Entry,
  EntryHead,
  EntryHistory,
  EntryList,
  EntryReader,
  Pool,
  PoolChange,
  PoolDefinition,
  PoolDetails,
  PoolSnapshot,
  PoolsConfig,
  VersionRef,
} from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import { type Failure, isFailure } from "../../kernel/failure.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import { mayRead, mayWrite, noEntry } from "./access.ts";
import { blameFor } from "./blame.ts";
import type { PoolWrite } from "./decide-write.ts";
import { endorseVersion } from "./endorse.ts";
import { type Freshness, freshness, lastReads, type ProposedWrite, refuseStale } from "./freshness.ts";
import { currentVersions, hasReadExternal, heldVersions, refuseWriter, seenVersions } from "./pins.ts";
import { EntryReads, type PageOptions, type ReadOptions } from "./read-entries.ts";
import { isRecorded, ReadLog, recordReads, type SeenVersion } from "./read-log.ts";
import { ReadRecorder } from "./read-recorder.ts";
import { PoolRegistry, RUN_POOL } from "./registry.ts";
import { type Retraction, retractVersion } from "./retract.ts";
import { largestValue } from "./rules.ts";
import {
  type CurrentValue,
  currentHeads,
  currentValues,
  formsOf,
  type KeyForm,
  type Replaced,
  whatIsReplaced,
  writtenKeys,
} from "./step-memory.ts";
import { sweepExpired, sweepRemoved } from "./sweep.ts";
import { type Turn, takeBackAdditions } from "./take-back.ts";
import { takeOverEntries } from "./take-over.ts";
import { readUsage } from "./usage.ts";
import { watchPool } from "./watch.ts";
import { type WriteOptions, writeEntries } from "./write-entries.ts";

/** Of no pool: that something external was seen at all. */
const SEEN_ELSEWHERE: SeenVersion = { pool: "", key: "", version: 0, external: true, shown: true };

/** What a write ran into. */
export interface Conflict {
  readonly pool: string;
  readonly key: string;
  readonly current: Entry | null;
}

/** Shared memory. Methods that end in `In` take part in a transaction of somebody else's, which must be a `locked` one. */
export class Pools {
  readonly #store: Store;
  readonly #registry: PoolRegistry;
  readonly #recorder: ReadRecorder;
  readonly #entries: EntryReads;

  constructor(store: Store) {
    this.#store = store;
    this.#registry = new PoolRegistry(store);
    this.#recorder = new ReadRecorder(store);
    this.#entries = new EntryReads(store, this.#registry, this.#recorder);
  }

  reconcile(config: PoolsConfig): Promise<void> {
    this.#registry.check(config);
    return this.#store.transact("reconcile pools", (tx) => this.#registry.reconcileIn(tx, config), "locked");
  }

  /** Refuses pools that cannot be: to be asked before anything of a config is applied. */
  checkConfig(config: PoolsConfig): void {
    this.#registry.check(config);
  }

  reconcileIn(tx: Tx, config: PoolsConfig): Promise<void> {
    return this.#registry.reconcileIn(tx, config);
  }

  /** An operator's pool. */
  createIn(tx: Tx, actor: string, name: string, definition: PoolDefinition): Promise<void> {
    return this.#registry.create(tx, actor, { name, kind: "made", definition });
  }

  async describeIn(tx: Tx, caller: Caller, name: string): Promise<Pool> {
    return this.#registry.describe(caller, await this.#registry.find(tx, caller, name));
  }

  /** The working memory of a run: `run:<id>`. */
  async createForRunIn(tx: Tx, actor: string, runId: string, definition: PoolDefinition): Promise<string> {
    const name = `${RUN_POOL}${runId}`;
    await this.#registry.create(tx, actor, { name, kind: "run", runId, definition });
    return name;
  }

  sealIn(tx: Tx, actor: string, name: string, retentionMs: number): Promise<void> {
    return this.#registry.seal(tx, actor, name, retentionMs);
  }

  /** For a run that goes on after its end. False: there is nothing left of it. */
  reopenIn(tx: Tx, actor: string, name: string): Promise<boolean> {
    return this.#registry.reopen(tx, actor, name);
  }

  list(caller: Caller, reads?: Reads): Promise<Pool[]> {
    return this.#registry.list(caller, reads);
  }

  async details(caller: Caller, name: string): Promise<PoolDetails> {
    const known = await this.#registry.find(this.#store.read, caller, name);
    const { total, byAgent } = await readUsage(this.#store.read, name);
    const seesAll = caller.kind === "operator" || caller.kind === "reader";
    return {
      ...this.#registry.describe(caller, known),
      definition: seesAll ? { ...known.rules.definition } : null,
      usage: total,
      usageByAgent: seesAll ? byAgent : null,
    };
  }

  /** Undefined where there is no entry, or none for this caller. A pool that is not there is refused. */
  read(caller: Caller, pool: string, key: string, options?: ReadOptions): Promise<Entry | undefined> {
    return this.#entries.read(caller, pool, key, options);
  }

  /** Several at once, recorded together. Keys without an entry are not in it. */
  async readAll(caller: Caller, pool: string, keys: readonly string[]): Promise<ReadonlyMap<string, Entry>> {
    const log = new ReadLog();
    const found = new Map<string, Entry>();
    for (const key of keys) {
      const entry = await this.#entries.read(caller, pool, key, { reads: log });
      if (entry) found.set(key, entry);
    }
    if (isRecorded(caller)) await this.#store.transact("record reads", (tx) => log.flushIn(tx, caller), "locked");
    return found;
  }

  /** The version a reader would see (0: none), and those that are no news to this caller in its run. Records no read. */
  async versions(caller: Caller, pool: string, key: string): Promise<{ readonly current: number; readonly seen: readonly number[] }> {
    const reads = this.#store.read;
    const found = await currentVersions(this.#registry, reads, caller, pool, [key]);
    return { current: found.get(key) ?? 0, seen: await seenVersions(reads, caller, pool, key) };
  }

  /** Those of the keys that the caller may read, whether or not there are entries; none of a pool it may not see. Records no read. */
  readable(caller: Caller, pool: string, keys: readonly string[]): Promise<string[]> {
    return this.readableIn(this.#store.read, caller, pool, keys);
  }

  async readableIn(reads: Reads, caller: Caller, pool: string, keys: readonly string[]): Promise<string[]> {
    const known = await this.#registry.find(reads, caller, pool).catch((error: unknown) => {
      if (isFailure(error, "request.not_found")) return undefined;
      throw error;
    });
    return known ? keys.filter((key) => mayRead(caller, known.rules.of(key))) : [];
  }

  /** Bytes of the largest value that the caller may write under this key, or under any; 0 where it may write nothing. */
  async largestWrite(caller: Caller, pool: string, key?: string): Promise<number> {
    const known = await this.#registry.find(this.#store.read, caller, pool).catch((error: unknown) => {
      if (isFailure(error, "request.not_found")) return undefined;
      throw error;
    });
    const rules = known === undefined ? [] : key === undefined ? known.rules.all() : [known.rules.of(key)];
    return Math.max(0, ...rules.filter((each) => mayWrite(caller, each)).map(largestValue));
  }

  listEntries(caller: Caller, pool: string, options?: PageOptions): Promise<EntryList> {
    return this.#entries.list(caller, pool, options);
  }

  /** Of these keys, those that there are entries of for this caller, without their values. */
  async currentHeads(caller: Caller, pool: string, keys: readonly string[]): Promise<EntryHead[]> {
    const readable = await this.readable(caller, pool, keys);
    return currentHeads(this.#store.read, pool, readable);
  }

  history(caller: Caller, pool: string, key: string, options?: Parameters<EntryReads["history"]>[3]): Promise<EntryHistory> {
    return this.#entries.history(caller, pool, key, options);
  }

  readers(caller: Caller, pool: string, key: string): Promise<EntryReader[]> {
    return this.#entries.readers(caller, pool, key);
  }

  difference(caller: Caller, pool: string, key: string, from: number, to: number, log?: ReadLog): Promise<Difference> {
    return this.#entries.difference(caller, pool, key, from, to, log);
  }

  snapshot(caller: Caller, pool: string, options?: Parameters<EntryReads["snapshot"]>[2]): Promise<PoolSnapshot> {
    return this.#entries.snapshot(caller, pool, options);
  }

  /** Of the current version, or of an older one. */
  async blame(caller: Caller, pool: string, key: string, version?: number): Promise<Blame> {
    const entry = await this.read(caller, pool, key, { version });
    if (!entry) throw noEntry(pool, key);
    return blameFor(this.#store, this.#registry, this.#entries, caller, entry);
  }

  /** From `after` on; without it from now on. Refuses at once what the caller may not watch. */
  async watch(
    caller: Caller,
    pool: string,
    after: number | undefined,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<PoolChange, void, void>> {
    await this.#registry.find(this.#store.read, caller, pool);
    const from = after ?? (await this.#store.ledger.horizon());
    return watchPool(this.#store, this.#registry, caller, pool, from, signal);
  }

  async write(caller: Caller, pool: string, writes: readonly PoolWrite[], options: WriteOptions = {}): Promise<Entry[]> {
    let last: Tx | undefined;
    const body = (tx: Tx): Promise<Entry[]> => {
      last = tx;
      return this.writeIn(tx, caller, pool, writes, options);
    };
    try {
      const entries = await this.#store.transact("write pool", body, "locked");
      if (last) options.reads?.settled(last);
      return entries;
    } catch (error) {
      await this.afterRefusal(caller, error, options.reads);
      throw error;
    }
  }

  /** All of the writes or none. Call `options.reads.settled(tx)` after the commit, and `afterRefusal` with what it threw. */
  writeIn(tx: Tx, caller: Caller, pool: string, writes: readonly PoolWrite[], options: WriteOptions = {}): Promise<Entry[]> {
    return writeEntries(this.#store, this.#registry, tx, caller, pool, writes, options);
  }

  /**
   * A refused write may show the caller what is current: that is a read, and is recorded before the refusal is told. It cannot be
   * in the refused transaction.
   */
  async afterRefusal(caller: Caller, error: unknown, log?: ReadLog): Promise<void> {
    const seen = shownBy(error);
    if (!seen) return;
    for (const one of seen) log?.note(one);
    const recorded = isRecorded(caller) && !log ? seen : [];
    const conflict = isFailure(error, "pool.conflict") ? (error.details as unknown as Conflict) : undefined;
    if (recorded.length === 0 && !conflict) return;
    await this.#store.transact(
      "tell refusal",
      async (tx) => {
        await recordReads(tx, caller, recorded);
        if (conflict) await this.#tellConflict(tx, caller, conflict);
      },
      "locked",
    );
  }

  /**
   * The same for whoever makes a value of a conflict and commits it: nothing was written, as everything is decided before. Answers what
   * the refusal shows; undefined: it is no conflict.
   */
  async conflictIn(tx: Tx, caller: Caller, error: unknown): Promise<Conflict | undefined> {
    if (!isFailure(error, "pool.conflict")) return undefined;
    const conflict = error.details as unknown as Conflict;
    if (isRecorded(caller)) await recordReads(tx, caller, shownBy(error) ?? []);
    await this.#tellConflict(tx, caller, conflict);
    return conflict;
  }

  async #tellConflict(tx: Tx, caller: Caller, { pool, key, current }: Conflict): Promise<void> {
    const keys = [{ key, version: current?.version ?? 0 }];
    await this.#store.ledger.append(tx, { type: "pool.conflicted", actor: caller.name, subject: ["pool", pool], data: { keys } });
  }

  /** By versions alone, without a recorded read; null where there is no entry. With `hold` they stay so until the transaction ends. */
  currentVersionsIn(
    tx: Tx,
    caller: Caller,
    pool: string,
    keys: readonly string[],
    hold: boolean,
  ): Promise<ReadonlyMap<string, number | null>> {
    return hold
      ? heldVersions(this.#store, this.#registry, tx, caller, pool, keys)
      : currentVersions(this.#registry, tx, caller, pool, keys);
  }

  /** Refuses as a write to these keys would, and writes nothing. */
  refuseWriterIn(tx: Tx, caller: Caller, pool: string, keys: readonly string[]): Promise<void> {
    return refuseWriter(this.#registry, tx, caller, pool, keys);
  }

  /** It has been shown words from outside, elsewhere than in a pool. */
  async noteExternalIn(tx: Tx, caller: Caller): Promise<void> {
    if (isRecorded(caller)) await recordReads(tx, caller, [SEEN_ELSEWHERE]);
  }

  /** Whether what the caller writes now would be external. */
  hasReadExternalIn(tx: Tx, caller: Caller): Promise<boolean> {
    return hasReadExternal(tx, caller);
  }

  retractIn(tx: Tx, caller: Caller, target: VersionRef, reason: string): Promise<Retraction> {
    return retractVersion(this.#store, this.#registry, tx, caller, target, reason);
  }

  endorseIn(tx: Tx, caller: Caller, pool: string, key: string, version: number | undefined, reason: string): Promise<Entry> {
    return endorseVersion(this.#store, this.#registry, tx, caller, pool, key, version, reason);
  }

  /** Is what this caller has read in its run still so? With what it is about to write: also where the two differ. */
  async freshness(caller: Caller, proposed?: readonly ProposedWrite[], log?: ReadLog): Promise<Freshness> {
    const rests = await lastReads(this.#store.read, caller, log);
    const answer = await freshness(this.#store, this.#registry, this.#store.read, caller, rests, proposed);
    const shown = answer.fresh ? [] : answer.shown.map((one) => ({ ...one, shown: true }));
    for (const one of shown) log?.note(one);
    if (shown.length > 0 && !log && isRecorded(caller))
      await this.#store.transact("record reads", (tx) => recordReads(tx, caller, shown), "locked");
    return answer;
  }

  /** For the end of a step: stops the transaction with `pool.stale` unless everything is fresh, and holds it so until the commit. */
  refuseStaleIn(tx: Tx, caller: Caller, proposed: readonly ProposedWrite[] = [], log?: ReadLog): Promise<void> {
    return refuseStale(this.#store, this.#registry, tx, caller, proposed, log);
  }

  /** What is current now, for whoever decides what happens next; no read is recorded. */
  currentValuesIn(reads: Reads, pool: string, keys: readonly string[]): Promise<ReadonlyMap<string, CurrentValue>> {
    return currentValues(this.#store, reads, pool, keys);
  }

  /** Those of the keys that the caller has written in its run. */
  writtenKeysIn(tx: Tx, caller: Caller, pool: string, keys: readonly string[]): Promise<ReadonlySet<string>> {
    return writtenKeys(tx, caller, pool, keys);
  }

  /** By key, what a write would replace, and whether the caller has read it. */
  whatIsReplacedIn(tx: Tx, caller: Caller, pool: string, keys: readonly string[]): Promise<ReadonlyMap<string, Replaced>> {
    return whatIsReplaced(tx, caller, pool, keys);
  }

  /** By key, what its values must be. */
  formsOfIn(tx: Tx, caller: Caller, pool: string, keys: readonly string[]): Promise<ReadonlyMap<string, KeyForm>> {
    return formsOf(this.#registry, tx, caller, pool, keys);
  }

  /** It knows these versions: what it does from now on rests on them. */
  async noteReadsIn(tx: Tx, caller: Caller, seen: readonly SeenVersion[]): Promise<void> {
    if (isRecorded(caller)) await recordReads(tx, caller, seen);
  }

  /** What a run's pool held, for the pool of one that takes it up again; without what these turns wrote. */
  takeOverIn(tx: Tx, actor: string, from: string, to: string, without: readonly string[]): Promise<void> {
    return takeOverEntries(this.#store, tx, actor, from, to, without);
  }

  /** What turns have added to lists, where their work is done again. */
  takeBackIn(tx: Tx, turns: readonly Turn[], pool: string, keys: readonly string[], note: string): Promise<void> {
    return takeBackAdditions(this.#store, this.#registry, tx, turns, pool, keys, note);
  }

  /** For upkeep, on every node. */
  async sweep(): Promise<void> {
    await sweepExpired(this.#store);
    await sweepRemoved(this.#store);
  }
}

function shownBy(error: unknown): SeenVersion[] | undefined {
  if (isFailure(error, "pool.conflict")) {
    const current = (error as Failure).details.current as Entry | null;
    if (!current) return [];
    return [{ pool: current.pool, key: current.key, version: current.version, external: current.label === "external", shown: false }];
  }
  if (!isFailure(error, "pool.stale")) return undefined;
  const { shown } = error.details as { shown: readonly Omit<SeenVersion, "shown">[] };
  return shown.map((one) => ({ ...one, shown: true }));
}
