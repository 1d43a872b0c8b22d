import { Failure } from "../kernel/failure.ts";
import type { Scope } from "../kernel/scope.ts";
import type { Engine, Reads, Tx } from "./engine.ts";
import { scopeKey, wholeMs } from "./keys.ts";
import { list } from "./sql.ts";

export type Acquired =
  | { readonly held: true; readonly fence: number; readonly expiresAt: number }
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
        // The fence is drawn in the update itself, after the row is locked: one drawn before could be smaller than the last holder's.
        const row = await tx.get<LeaseRow>`
          insert into leases (name, holder, fence, expires_at) values (${key}, ${holder}, ${fence}, now_ms() + cast(${wholeMs(ttlMs)} as bigint))
          on conflict (name) do update set holder = ${holder}, fence = ${fence}, expires_at = now_ms() + cast(${wholeMs(ttlMs)} as bigint)
          where leases.expires_at <= now_ms()
          returning holder, fence, expires_at`;
        if (row) return { held: true, fence: row.fence, expiresAt: row.expires_at };
        const current = await tx.get<LeaseRow>`select holder, fence, expires_at from leases where name = ${key}`;
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

  /** The row stays, with the negative time of its release: a name used again continues above its last fence. Answers whether it was still ours; a stale holder's release does nothing. */
  async release(name: Scope, fence: number): Promise<boolean> {
    const changed = await this.#engine.single(
      "release lease",
      (tx) =>
        tx.run`update leases set expires_at = -now_ms() where name = ${scopeKey(name)} and fence = ${fence} and expires_at > now_ms()`,
    );
    return changed > 0;
  }

  /** Stops the transaction unless the fence holds now, and keeps it held until the transaction ends. */
  async guard(tx: Tx, name: Scope, fence: number): Promise<void> {
    const row = await tx.get`select 1 from leases
      where name = ${scopeKey(name)} and fence = ${fence} and expires_at > now_ms() ${this.#engine.dialect.forUpdate}`;
    if (!row) throw new Failure("fence.stale", `the lease ${name.join("/")} with fence ${fence} is no longer held`);
  }

  /** For the one daemon on a file, which knows that whoever held them is dead. */
  async letGoOfAll(): Promise<void> {
    await this.#engine.single("let go of leases", (tx) => tx.run`update leases set expires_at = -now_ms() where expires_at > now_ms()`);
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
