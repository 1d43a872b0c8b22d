import type { Caller } from "../../kernel/caller.ts";
import type { Tx } from "../../store/engine.ts";

export interface SeenVersion {
  readonly pool: string;
  readonly key: string;
  /** 0: the key was looked for and not there. */
  readonly version: number;
  readonly external: boolean;
  /** Only a difference was shown: it counts for what is derived from it, not as having read the version. */
  readonly shown: boolean;
}

/** Whose reads are recorded: every agent's and guest's. */
export function isRecorded(caller: Caller): boolean {
  return caller.kind === "agent" || caller.kind === "guest";
}

/**
 * What a run has read and not yet recorded. It is written in the run's next transaction, whichever that is:
 *
 *   note* → flushIn(tx) → (commit) → settled(tx)
 *
 * A body that runs again flushes again, and several calls of a run may be under way at once; only what was committed is forgotten.
 */
export class ReadLog {
  readonly #pending = new Map<string, SeenVersion>();
  readonly #flushed = new WeakMap<Tx, readonly SeenVersion[]>();

  note(seen: SeenVersion): void {
    const name = JSON.stringify([seen.pool, seen.key, seen.version]);
    const known = this.#pending.get(name);
    // The order is that of the last reads.
    this.#pending.delete(name);
    this.#pending.set(name, known && !known.shown ? { ...seen, shown: false } : seen);
  }

  get pending(): readonly SeenVersion[] {
    return [...this.#pending.values()];
  }

  get sawExternal(): boolean {
    return this.pending.some((seen) => seen.external);
  }

  async flushIn(tx: Tx, caller: Caller): Promise<void> {
    const flushed = this.pending;
    this.#flushed.set(tx, flushed);
    await recordReads(tx, caller, flushed);
  }

  /** Call it after the commit, with the transaction that was committed: the one its body was handed last. */
  settled(tx: Tx): void {
    for (const seen of this.#flushed.get(tx) ?? []) {
      const name = JSON.stringify([seen.pool, seen.key, seen.version]);
      if (this.#pending.get(name) === seen) this.#pending.delete(name);
    }
    this.#flushed.delete(tx);
  }
}

export async function recordReads(tx: Tx, caller: Caller, reads: readonly SeenVersion[]): Promise<void> {
  const run = caller.run ?? "";
  // In one order for everybody: on PostgreSQL two of them could otherwise wait for each other. Of one key as they were read: the last counts.
  const ordered = reads.length < 2 ? reads : reads.toSorted((a, b) => compare(a.pool, b.pool) || compare(a.key, b.key));
  for (const { pool, key, version, external, shown } of ordered) {
    await tx.run`insert into pool_reads (pool, key, version, agent, run, step, external, shown, first_at, last_at)
      values (${pool}, ${key}, ${version}, ${caller.name}, ${run}, ${caller.step}, ${external ? 1 : 0}, ${shown ? 1 : 0}, now_ms(), now_ms())
      on conflict (pool, key, version, agent, run) do update
      set last_at = excluded.last_at, shown = case when excluded.shown = 0 then 0 else pool_reads.shown end`;
  }
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
