import type { Claim, ClaimList, ClaimQuery, ClaimRelease, ClaimRenewal, NewClaim } from "../../contract/claims.ts";
import { MAX_HOLD_MS } from "../../contract/claims.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { TimeSlice } from "../../kernel/time-slice.ts";
import type { Tx } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { forgetUnusedLocks, lockFor } from "./claim-locks.ts";
import { type Asked, type Blocker, type ClaimRow, claimOf, lookAround, NOW, type Surroundings } from "./claim-rows.ts";
import { listClaims } from "./list-claims.ts";
import { overlaps, parseResource } from "./resource.ts";
import { WaitingLine } from "./waiting-line.ts";

export interface ClaimLimits {
  /** Claims and places in lines of one holder. */
  readonly perHolder: number;
  readonly waitersPerResource: number;
  readonly maxHoldMs: number;
}

const LIMITS: ClaimLimits = { perHolder: 1_000, waitersPerResource: 100, maxHoldMs: MAX_HOLD_MS };
const POLL_MS = 500;
const SWEEP_ROWS = 500;
const TIDY_MS = 60_000;
const COLUMNS = code("fence, name, holder, mode, taken_at, expires_at, max_until");

export interface Taken {
  readonly claim: Claim;
  /** False: it was the holder's own already, and only lives longer. */
  readonly fresh: boolean;
}

export interface TakeOptions {
  /** Aborts when whoever waits has left. */
  readonly signal?: AbortSignal;
  /** Runs in the transaction that takes it. */
  readonly record?: (tx: Tx, taken: Taken) => Promise<void>;
}

type Attempt =
  | { readonly got: Taken }
  | { readonly got: null; readonly blocker: Blocker; readonly waiter: number | null }
  | { readonly got: null; readonly full: string };

/** For the pulse: whether a claim has run out, or a waiter has. */
export const CLAIMS_DUE = sql`(select min(expires_at) from claims) <= now_ms() or exists (select 1 from claim_waiters where alive_until <= ${NOW})`;

/**
 * Ownership of a resource name for a time, as agents agree on it.
 *
 *   free → held(fence) → renewed* → released | expired → held(larger fence)
 *   held by others, and the asker waits → in line → held, when nobody before it in the line is in its way
 *
 * What could overlap is given out one after another, under the locks of its first element; renewing and releasing need only the row.
 */
export class Claims {
  readonly #store: Store;
  readonly #limits: ClaimLimits;
  readonly #line: WaitingLine;
  #tidied = Number.NEGATIVE_INFINITY;

  constructor(store: Store, node: string, limits: Partial<ClaimLimits> = {}) {
    this.#store = store;
    this.#limits = { ...LIMITS, ...limits };
    this.#line = new WaitingLine(store, node, this.#limits.waitersPerResource);
  }

  /** The holder's own repeat keeps its fence and lives longer. */
  async take(caller: Caller, request: NewClaim, options: TakeOptions = {}): Promise<Taken> {
    mustBeMember(caller);
    const asked: Asked = { resource: parseResource(request.resource), holder: caller.name, mode: request.mode, waiter: null };
    const until = performance.now() + request.wait_ms;
    // A refusal needs no transaction: who comes too late changes nothing.
    const first = request.wait_ms === 0 ? inTheWay(await lookAround(this.#store.read, asked)) : undefined;
    if (first) throw held(asked, first);
    let waiter: number | null = null;
    try {
      while (true) {
        const seen = this.#store.wake.version("claims");
        const left = until - performance.now();
        const attempt: Attempt = await this.#attempt({ ...asked, waiter }, request.ttl_ms, left > 0, options.record);
        if (attempt.got) {
          waiter = null;
          return attempt.got;
        }
        if ("full" in attempt) throw new Failure("claim.too_many", attempt.full);
        waiter = attempt.waiter;
        if (left > 0) await this.#untilMaybeFree({ ...asked, waiter }, seen, until, options.signal);
        // Whoever has left must not be given anything any more.
        if (left <= 0 || options.signal?.aborted) throw held(asked, attempt.blocker);
      }
    } finally {
      if (waiter !== null) await this.#leave(waiter);
    }
  }

  async renew(caller: Caller, renewal: ClaimRenewal): Promise<Claim> {
    return this.#store.transact("renew claim", (tx) => this.renewIn(tx, caller, renewal), "locked");
  }

  /** One that was lost is never revived; beyond its longest time it cannot be held. Giving it up early is `release`. */
  async renewIn(tx: Tx, caller: Caller, { resource, fence, ttl_ms: ttlMs }: ClaimRenewal): Promise<Claim> {
    mustBeMember(caller);
    const row = await tx.get<ClaimRow>`update claims set expires_at = ${longer(ttlMs)}
      where fence = ${fence} and name = ${resource} and ${mayTouch(caller)} and expires_at > now_ms() returning ${COLUMNS}`;
    if (!row) throw lost(resource, fence);
    await this.#tell(tx, "claim.renewed", caller.name, row);
    return claimOf(row);
  }

  async release(caller: Caller, release: ClaimRelease): Promise<void> {
    await this.#store.transact("release claim", (tx) => this.releaseIn(tx, caller, release), "locked");
  }

  async releaseIn(tx: Tx, caller: Caller, { resource, fence }: ClaimRelease): Promise<void> {
    mustBeMember(caller);
    const row = await tx.get<ClaimRow>`delete from claims
      where fence = ${fence} and name = ${resource} and ${mayTouch(caller)} and expires_at > now_ms() returning ${COLUMNS}`;
    if (!row) throw lost(resource, fence);
    await this.#tell(tx, "claim.released", caller.name, row);
    tx.hint("claims");
  }

  /** Whatever this holder has: for one that has gone away for good. */
  async releaseAllIn(tx: Tx, actor: string, holder: string): Promise<number> {
    const rows = await tx.all<ClaimRow>`delete from claims where holder = ${holder} and expires_at > now_ms() returning ${COLUMNS}`;
    for (const row of rows) await this.#tell(tx, "claim.released", actor, row);
    if (rows.length > 0) tx.hint("claims");
    return rows.length;
  }

  /** Stops the transaction unless the caller holds this resource with this fence now, and keeps it held until the transaction ends. */
  async guard(tx: Tx, caller: Caller, resource: string, fence: number): Promise<void> {
    const row = await tx.get<{ name: string }>`select name from claims
      where fence = ${fence} and ${mayTouch(caller)} and expires_at > now_ms() ${this.#store.dialect.forUpdate}`;
    const asked = parseResource(resource);
    const covered = row && (row.name === resource || (!asked.pattern && overlaps(asked, row.name)));
    if (!covered) throw lost(resource, fence);
  }

  /** Names are common ground: every caller sees who holds what. */
  async list(caller: Caller, query: ClaimQuery): Promise<ClaimList> {
    if (caller.kind === "channel") throw new Failure("request.forbidden", "a channel takes no part in claims");
    return listClaims(this.#store.read, query);
  }

  /** Tells of claims whose time is up, and forgets waiters whose process is gone. Any node may call it, often. */
  async sweep(): Promise<number> {
    const due = await this.#store.read.get`select 1 from claims where expires_at <= ${NOW}
      union all select 1 from claim_waiters where alive_until <= ${NOW} limit 1`;
    const tidy = performance.now() - this.#tidied > TIDY_MS;
    if (!due && !tidy) return 0;
    if (tidy) this.#tidied = performance.now();
    return this.#store.transact("sweep claims", (tx) => this.#sweepIn(tx, tidy), "locked");
  }

  async #sweepIn(tx: Tx, tidy: boolean): Promise<number> {
    const { dialect } = this.#store;
    const due = sql`select fence from claims where expires_at <= ${NOW} order by expires_at limit ${SWEEP_ROWS} ${dialect.skipLocked}`;
    const rows = await tx.all<ClaimRow>`delete from claims where fence ${dialect.amongFirst(due)} returning ${COLUMNS}`;
    for (const row of rows) await this.#tell(tx, "claim.lost", row.holder, row);
    await this.#line.sweep(tx, SWEEP_ROWS);
    if (tidy) await forgetUnusedLocks(dialect, tx, SWEEP_ROWS);
    if (rows.length > 0) tx.hint("claims");
    return rows.length;
  }

  async #attempt(asked: Asked, ttlMs: number, wait: boolean, record: TakeOptions["record"]): Promise<Attempt> {
    return this.#store.transact(
      "take claim",
      async (tx): Promise<Attempt> => {
        await lockFor(tx, asked);
        const free = await this.#clear(tx, asked);
        if ("blocker" in free) {
          if (!wait) return { got: null, blocker: free.blocker, waiter: asked.waiter };
          if (await this.#hasTooMany(tx, asked)) return this.#tooMany(asked);
          const waiter = await this.#line.enter(tx, asked);
          if (waiter === null) return { got: null, full: `too many are waiting for "${asked.resource.name}" already` };
          return { got: null, blocker: free.blocker, waiter };
        }
        if (!free.own && (await this.#hasTooMany(tx, asked))) return this.#tooMany(asked);
        const row = free.own ? await extend(tx, free.own.fence, asked.mode, ttlMs) : await this.#insert(tx, asked, ttlMs);
        if (asked.waiter !== null) await tx.run`delete from claim_waiters where id = ${asked.waiter}`;
        await this.#tell(tx, free.own ? "claim.renewed" : "claim.taken", asked.holder, row);
        const taken = { claim: claimOf(row), fresh: !free.own };
        await record?.(tx, taken);
        return { got: taken };
      },
      "locked",
    );
  }

  /** Looks who is in the way, and removes those whose time is up. One of them may be renewed at this very moment: then it is looked again. */
  async #clear(tx: Tx, asked: Asked): Promise<Pick<Surroundings, "own"> | { readonly blocker: Blocker }> {
    while (true) {
      const around = await lookAround(tx, asked);
      const blocker = inTheWay(around);
      if (blocker) return { blocker };
      if (around.own) {
        // Held until the end of the transaction, or gone.
        const alive =
          await tx.get`select 1 from claims where fence = ${around.own.fence} and expires_at > now_ms() ${this.#store.dialect.forUpdate}`;
        if (!alive) continue;
      }
      if ((await this.#removeExpired(tx, around.expired)) === around.expired.length) return { own: around.own };
    }
  }

  async #removeExpired(tx: Tx, fences: readonly number[]): Promise<number> {
    const slice = new TimeSlice();
    let removed = 0;
    for (let from = 0; from < fences.length; from += SWEEP_ROWS) {
      const gone = await tx.all<ClaimRow>`delete from claims
        where fence in ${list(fences.slice(from, from + SWEEP_ROWS))} and expires_at <= now_ms() returning ${COLUMNS}`;
      for (const row of gone) {
        if (slice.isOver) await slice.next();
        await this.#tell(tx, "claim.lost", row.holder, row);
      }
      removed += gone.length;
    }
    return removed;
  }

  /** Exact: all that one holder asks for is decided under its lock. */
  async #hasTooMany(tx: Tx, { holder, waiter }: Asked): Promise<boolean> {
    const own = await tx.get<{ count: number }>`select (select count(*) from claims where holder = ${holder} and expires_at > ${NOW})
      + (select count(*) from claim_waiters where holder = ${holder} and alive_until > ${NOW} and id <> ${waiter ?? 0}) as count`;
    return (own?.count ?? 0) >= this.#limits.perHolder;
  }

  #tooMany({ holder }: Asked): Attempt {
    return { got: null, full: `${holder} holds or waits for ${this.#limits.perHolder} resources already` };
  }

  async #insert(tx: Tx, { resource, holder, mode }: Asked, ttlMs: number): Promise<ClaimRow> {
    const ttl = Math.min(ttlMs, this.#limits.maxHoldMs);
    const row = await tx.get<ClaimRow>`insert into claims (fence, name, key, pattern, holder, mode, taken_at, expires_at, max_until)
      values (${await this.#store.dialect.nextFence(tx)}, ${resource.name}, ${resource.key}, ${resource.pattern ? 1 : 0}, ${holder}, ${mode},
        now_ms(), now_ms() + cast(${ttl} as bigint), now_ms() + cast(${this.#limits.maxHoldMs} as bigint)) returning ${COLUMNS}`;
    return row as ClaimRow;
  }

  /** Until it looks free, or the time is up. Looking needs no lock; whether it is free is decided under the lock. */
  async #untilMaybeFree(asked: Asked, seenAtAttempt: number, until: number, signal?: AbortSignal): Promise<void> {
    for (let seen = seenAtAttempt; ; ) {
      await this.#store.wake.wait("claims", seen, Math.min(POLL_MS, Math.max(1, until - performance.now())), signal);
      if (signal?.aborted || performance.now() >= until) return;
      await this.#line.keepAlive();
      seen = this.#store.wake.version("claims");
      if (!inTheWay(await lookAround(this.#store.read, asked))) return;
    }
  }

  /** A place that cannot be given back now is given up with its process's silence. */
  async #leave(waiter: number): Promise<void> {
    await this.#store.transact("leave the line", (tx) => this.#line.leave(tx, waiter), "locked").catch(() => {});
  }

  async #tell(
    tx: Tx,
    type: "claim.taken" | "claim.renewed" | "claim.released" | "claim.lost",
    actor: string,
    row: ClaimRow,
  ): Promise<void> {
    const data = { resource: row.name, holder: row.holder, fence: row.fence, mode: row.mode, expiresAt: row.expires_at };
    await this.#store.ledger.append(tx, { type, actor, subject: ["claim", ...row.name.split("/")], data });
  }
}

/** Longer, never shorter: a second part of the same agent must not take away what the first was told and relies on. */
function longer(ttlMs: number): SqlFragment {
  const wanted = sql`now_ms() + cast(${ttlMs} as bigint)`;
  return sql`case when max_until < ${wanted} then max_until when expires_at > ${wanted} then expires_at else ${wanted} end`;
}

/** Never weaker either. */
async function extend(tx: Tx, fence: number, mode: Asked["mode"], ttlMs: number): Promise<ClaimRow> {
  const row = await tx.get<ClaimRow>`update claims set mode = case when ${mode} = 'exclusive' then 'exclusive' else mode end,
      expires_at = ${longer(ttlMs)} where fence = ${fence} returning ${COLUMNS}`;
  return row as ClaimRow;
}

/** One's own claim is made longer or stronger past those who wait: they wait for its end anyway. */
function inTheWay({ holder, ahead, own }: Surroundings): Blocker | undefined {
  return holder ?? (own ? undefined : ahead);
}

function mayTouch(caller: Caller) {
  return caller.kind === "operator" ? code("true") : sql`holder = ${caller.name}`;
}

function mustBeMember(caller: Caller): void {
  if (caller.kind === "reader" || caller.kind === "channel")
    throw new Failure("request.forbidden", `a ${caller.kind} token takes no part in claims`);
}

function held({ resource }: Asked, { holder, expiresAt, resource: theirs, waiting }: Blocker): Failure {
  const through = theirs === resource.name ? "" : ` through "${theirs}"`;
  const message = waiting
    ? `"${resource.name}": ${holder} waits for it before you${through}`
    : `"${resource.name}" is held by ${holder}${through}`;
  const until = new Date(expiresAt).toISOString();
  const hint = waiting
    ? "Ask with wait_ms to stand in line too."
    : `It ends at ${until} unless it is renewed; ask with wait_ms to stand in line.`;
  return new Failure("claim.held", message, { hint, details: { holder, expiresAt, resource: theirs, waiting } });
}

function lost(resource: string, fence: number): Failure {
  return new Failure("claim.lost", `you do not hold "${resource}" with fence ${fence}`);
}
