import { Failure } from "../kernel/failure.ts";
import { decodeScope, type Scope, scopeUpperBound } from "../kernel/scope.ts";
import type { Engine, Reads, Tx } from "./engine.ts";
import { scopeKey, wholeMs } from "./keys.ts";
import { list, sql } from "./sql.ts";
import type { WakeTopic } from "./wake.ts";

/** `isClean`: nobody had it before, or whoever had it has given it back. Else something of the last holder may still go on somewhere. */
export type Acquired =
  | { readonly held: true; readonly fence: number; readonly expiresAt: number; readonly isClean: boolean }
  | { readonly held: false; readonly holder: string; readonly expiresAt: number };

interface LeaseRow {
  readonly holder: string;
  readonly fence: number;
  readonly expires_at: number;
}

/**
 * Ownership for a time. A fence is larger than every fence before it, for ever; the database's clock alone says what has expired.
 *
 *   free → held(fence) → renewed* → released | expired → held(larger fence)
 */
export class Leases {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async acquire(name: Scope, holder: string, ttlMs: number): Promise<Acquired> {
    const key = scopeKey(name);
    return this.#engine.transact(
      "acquire lease",
      async (tx) => {
        const fence = await this.#engine.dialect.nextFence(tx);
        const known =
          await tx.get<LeaseRow>`select holder, fence, expires_at from leases where name = ${key} ${this.#engine.dialect.forUpdate}`;
        // The fence is drawn in the update itself, after the row is locked: one drawn before could be smaller than the last holder's.
        const row = known
          ? await tx.get<LeaseRow>`update leases
              set holder = ${holder}, fence = ${fence}, expires_at = now_ms() + cast(${wholeMs(ttlMs)} as bigint)
              where name = ${key} and expires_at <= now_ms() returning holder, fence, expires_at`
          : await tx.get<LeaseRow>`insert into leases (name, holder, fence, expires_at)
              values (${key}, ${holder}, ${fence}, now_ms() + cast(${wholeMs(ttlMs)} as bigint))
              on conflict (name) do nothing returning holder, fence, expires_at`;
        if (row) return { held: true, fence: row.fence, expiresAt: row.expires_at, isClean: !known || known.expires_at < 0 };
        const current = known ?? (await tx.get<LeaseRow>`select holder, fence, expires_at from leases where name = ${key}`);
        return { held: false, holder: current?.holder ?? "", expiresAt: current?.expires_at ?? 0 };
      },
      "locked",
    );
  }

  /** Answers the new expiry, or null: a lease that was lost is never revived. */
  async renew(name: Scope, fence: number, ttlMs: number): Promise<number | null> {
    const row = await this.#engine.single(
      "renew lease",
      (tx) =>
        tx.get<{ expires_at: number }>`update leases set expires_at = now_ms() + cast(${wholeMs(ttlMs)} as bigint)
        where name = ${scopeKey(name)} and fence = ${fence} and expires_at > now_ms() returning expires_at`,
    );
    return row?.expires_at ?? null;
  }

  /**
   * Many in one statement. Answers the fences of those that were renewed; of the others some are lost, and some are in use by a transaction,
   * for which nobody waits here: `renew` tells which.
   */
  async renewAll(held: readonly { readonly name: Scope; readonly fence: number }[], ttlMs: number): Promise<ReadonlySet<number>> {
    if (held.length === 0) return new Set();
    const { dialect } = this.#engine;
    // No two have the same fence, whatever they are named.
    const rows = await this.#engine.single("renew leases", (tx) => {
      const ours = sql`select name from leases where name in ${list(held.map(({ name }) => scopeKey(name)))}
        and fence in ${list(held.map(({ fence }) => fence))} and expires_at > now_ms() ${dialect.skipLocked}`;
      return tx.all<{ fence: number }>`update leases set expires_at = now_ms() + cast(${wholeMs(ttlMs)} as bigint)
        where name ${dialect.amongFirst(ours)} returning fence`;
    });
    return new Set(rows.map(({ fence }) => fence));
  }

  /** The row stays, with the negative time of its release: a name used again continues above its last fence. Answers whether it was still ours; a stale holder's release does nothing. `topic`: of those who wait for it. */
  async release(name: Scope, fence: number, topic?: WakeTopic): Promise<boolean> {
    const changed = await this.#engine.single("release lease", (tx) => {
      if (topic) tx.hint(topic);
      return tx.run`update leases set expires_at = -now_ms() where name = ${scopeKey(name)} and fence = ${fence} and expires_at > now_ms()`;
    });
    return changed > 0;
  }

  /** It runs out now. Nothing is written under its fence any more, but something of its holder may still go on, and whoever comes next is told. */
  async abandon(name: Scope, fence: number): Promise<void> {
    await this.#engine.single(
      "abandon lease",
      (tx) => tx.run`update leases set expires_at = now_ms() where name = ${scopeKey(name)} and fence = ${fence} and expires_at > now_ms()`,
    );
  }

  /** Stops the transaction unless the fence holds now, and keeps it held until the transaction ends. */
  async guard(tx: Tx, name: Scope, fence: number): Promise<void> {
    const row = await tx.get`select 1 from leases
      where name = ${scopeKey(name)} and fence = ${fence} and expires_at > now_ms() ${this.#engine.dialect.forUpdate}`;
    if (!row) throw new Failure("fence.stale", `the lease ${name.join("/")} with fence ${fence} is no longer held`);
  }

  /** For the one daemon on a file, which knows that whoever held them is dead. */
  async letGoOfAll(): Promise<void> {
    await this.#engine.single("let go of leases", (tx) => tx.run`update leases set expires_at = -now_ms() where expires_at > 0`);
  }

  /** Of holders that are certain to be dead. What has run out meanwhile counts as given back as well: nothing of them goes on. */
  async letGoOf(holders: readonly string[]): Promise<void> {
    if (holders.length === 0) return;
    await this.#engine.single(
      "let go of leases",
      (tx) => tx.run`update leases set expires_at = -now_ms() where expires_at > 0 and holder in ${list(holders)}`,
    );
  }

  /** Forgets names that nobody has used for this long. Their next fence is larger all the same: fences come from one source. */
  async sweep(unusedMs: number): Promise<number> {
    return this.#engine.single(
      "sweep leases",
      (tx) => tx.run`delete from leases where abs(expires_at) < now_ms() - cast(${wholeMs(unusedMs)} as bigint)`,
    );
  }
}

/** Which of these names somebody holds now. */
export async function heldAmong(reads: Reads, names: readonly Scope[]): Promise<(name: Scope) => boolean> {
  if (names.length === 0) return () => false;
  const rows = await reads.all<{
    name: string;
  }>`select name from leases where name in ${list(names.map(scopeKey))} and expires_at > now_ms()`;
  const held = new Set(rows.map(({ name }) => name));
  return (name) => held.has(scopeKey(name));
}

/** Who holds what now, of all names that begin so. */
export async function heldUnder(reads: Reads, prefix: Scope): Promise<{ readonly name: Scope; readonly holder: string }[]> {
  const from = scopeKey(prefix);
  const rows = await reads.all<{ name: string; holder: string }>`select name, holder from leases
    where name >= ${from} and name < ${scopeUpperBound(from)} and expires_at > now_ms() order by name`;
  return rows.map(({ name, holder }) => ({ name: decodeScope(name), holder }));
}

/** For how many milliseconds each of these names is still held, by the database's clock; 0: it is free. */
export async function timesLeft(reads: Reads, names: readonly Scope[]): Promise<(name: Scope) => number> {
  const rows = await reads.all<{
    name: string;
    ms: number;
  }>`select name, expires_at - now_ms() as ms from leases where name in ${list(names.map(scopeKey))}`;
  const left = new Map(rows.map(({ name, ms }) => [name, Math.max(0, ms)]));
  return (name) => left.get(scopeKey(name)) ?? 0;
}
