import type { ReachedPoint } from "../kernel/crash-points.ts";
import { Failure } from "../kernel/failure.ts";
import { jitteredBackoff, type Random } from "../kernel/random.ts";
import type { Scope } from "../kernel/scope.ts";
import type { Engine, Reads, Tx } from "./engine.ts";
import { FairOrder, type Tenant } from "./fair-order.ts";
import { scopeKey, wholeMs } from "./keys.ts";
import { advanceLanes, enterLane } from "./lanes.ts";
import { code, list, pairs, type SqlFragment, sql } from "./sql.ts";

export interface NewWork {
  readonly kind: string;
  readonly payload: unknown;
  /** Items of one lane run one after another, in the order they were enqueued, on all nodes together. */
  readonly lane?: Scope;
  readonly priority?: number;
  readonly delayMs?: number;
  readonly maxAttempts?: number;
  /** Tenants take turns. Work of nobody goes before everybody's. */
  readonly tenant?: Tenant;
}

/** What an owner shows with every write: which item, and the number of its claim. */
export interface Claim {
  readonly id: number;
  readonly fence: number;
}

/** A node that takes what it adds. */
export interface Taker {
  readonly owner: string;
  readonly ttlMs: number;
}

export interface ClaimedWork extends Claim {
  readonly kind: string;
  readonly payload: unknown;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly tenant: string | null;
}

export interface DeadWork {
  readonly id: number;
  readonly kind: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly error: string | null;
}

interface WorkRow {
  readonly id: number;
  readonly kind: string;
  readonly fence: number;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly payload: string;
  readonly error: string | null;
}

interface ClaimRow extends WorkRow {
  readonly tenant: string | null;
  readonly priority: number;
  readonly vtime: number;
}

interface LaneRow {
  readonly id: number;
  readonly lane: string | null;
}

interface CancelledRow extends LaneRow {
  readonly state: string;
}

const MAX_ATTEMPTS = 5;
const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 5 * 60_000;
const NOTHING = code("");
const IN_ORDER = code("order by priority desc, vtime, id");
/** How far a claim that leaves tenants out looks along the line before it asks tenant by tenant. */
const LOOK_AHEAD = code("64");
/** When no hint comes, this is how late ready work may be found. */
const POLL_MS = 1_000;
const LONG_MS = 3_600_000;

/**
 * Work that is done once it is settled.
 *
 *   queued (behind others of its lane) → ready → running(fence) → settled (the row is gone)
 *   running → parked, for a back-off or for somebody's word → ready | dead, when its attempts are used up
 *   running, and its lease ran out → ready, with a larger fence at the next claim | dead
 *
 * Only the head of a lane is ever anything but queued, and nothing that must wait for its time is ready: so claiming looks
 * neither at lanes nor at the clock. Whoever waits for work, or reaps, makes ready what is due.
 */
export class WorkQueue {
  readonly #engine: Engine;
  readonly #random: Random;
  readonly #reached: ReachedPoint;
  readonly #order: FairOrder;

  constructor(engine: Engine, random: Random, reached: ReachedPoint) {
    this.#engine = engine;
    this.#random = random;
    this.#reached = reached;
    this.#order = new FairOrder(engine.dialect.name === "sqlite");
  }

  async enqueue(tx: Tx, work: NewWork): Promise<number> {
    return (await this.#add(tx, work, null)).id;
  }

  /**
   * The same for a node that has a place free and would claim it in a moment: it is claimed as it is added, which saves a commit and a look at
   * the line. Answers the claim; null: others of its lane come first, and it waits like any other.
   */
  async enqueueTaken(tx: Tx, work: NewWork, by: Taker): Promise<ClaimedWork | null> {
    const { id, isTaken } = await this.#add(tx, work, by);
    const { kind, payload, maxAttempts = MAX_ATTEMPTS, tenant } = work;
    return isTaken ? { id, fence: 1, kind, payload, attempt: 1, maxAttempts, tenant: tenant?.name ?? null } : null;
  }

  async #add(tx: Tx, work: NewWork, by: Taker | null): Promise<{ readonly id: number; readonly isTaken: boolean }> {
    const { kind, priority = 0, delayMs = 0, maxAttempts = MAX_ATTEMPTS, tenant } = work;
    const lane = work.lane ? scopeKey(work.lane) : null;
    const place = lane === null ? { position: null, first: true } : await enterLane(tx, lane);
    const isReady = place.first && !delayMs;
    const taker = isReady ? by : null;
    const state = taker ? "running" : isReady ? "ready" : place.first ? "parked" : "queued";
    const count = taker ? 1 : 0;
    const cost = tenant ? 1 / tenant.weight : 1;
    const vtime = tenant && isReady ? await this.#order.next(tx, tenant.name, priority, cost) : 0;
    if (taker) this.#order.passed(vtime);
    else tx.hint("work");
    const id = await tx.insert`
      insert into work (kind, lane, position, priority, state, run_at, attempts, max_attempts, fence, woken, payload, created_at, tenant, cost, vtime,
        owner, lease_until)
      values (${kind}, ${lane}, ${place.position}, ${priority}, ${state}, now_ms() + cast(${wholeMs(delayMs)} as bigint), ${count}, ${maxAttempts},
        ${count}, 0, ${JSON.stringify(work.payload ?? null)}, now_ms(), ${tenant?.name ?? null}, cast(${cost} as double precision),
        cast(${vtime} as double precision), ${taker?.owner ?? null}, now_ms() + cast(${taker ? wholeMs(taker.ttlMs) : null} as bigint))
      returning id`;
    return { id, isTaken: taker !== null };
  }

  /**
   * Takes up to `limit` ready items for `ttlMs`, the most urgent first, then by turns of their tenants, then the oldest. `without`:
   * nothing of these tenants; null among them is work that is nobody's.
   */
  async claim(
    owner: string,
    limit: number,
    ttlMs: number,
    kinds?: readonly string[],
    without: readonly (string | null)[] = [],
  ): Promise<ClaimedWork[]> {
    // The limit is part of the text: as a parameter PostgreSQL cannot judge it, never settles on a plan, and plans every claim anew (a
    // third of its time).
    const most = code(String(Math.trunc(limit)));
    const inLine = sql`where state = 'ready' ${ofKinds(kinds)} ${IN_ORDER}`;
    if (without.length === 0) return this.#take(owner, ttlMs, sql`select id from work ${inLine} limit ${most}`);
    // Past the items of a tenant that is left out the way may be as long as its backlog. A look at the beginning of the line finds whoever
    // is next nearly always; else each tenant is asked for its first item, which costs a probe of the index by tenant.
    const others = sql`coalesce(tenant, '') not in ${list(padded(without.map((tenant) => tenant ?? "")))}`;
    const near = sql`select id from (select id, tenant, priority, vtime from work ${inLine} limit ${LOOK_AHEAD}) as near where ${others} ${IN_ORDER} limit ${most}`;
    const found = await this.#take(owner, ttlMs, this.#stillReady(near));
    if (found.length > 0) return found;
    const first = sql`select id from (select
        (select w.id from work as w where w.state = 'ready' and w.tenant is not null and w.tenant = waiting.tenant ${ofKinds(kinds)}
          order by w.priority desc, w.vtime, w.id limit 1) as id
      from waiting where tenant is not null and ${others}) as heads where id is not null`;
    return this.#take(owner, ttlMs, this.#stillReady(sql`${WAITING_TENANTS} ${first}`, sql`${IN_ORDER} limit ${most}`));
  }

  #stillReady(ids: SqlFragment, rest: SqlFragment = NOTHING): SqlFragment {
    return sql`select id from work where state = 'ready' and id ${this.#engine.dialect.amongFirst(ids)} ${rest}`;
  }

  async #take(owner: string, ttlMs: number, chosen: SqlFragment): Promise<ClaimedWork[]> {
    // Found first, and once: joined to a subquery, the plan read the whole table (3 ms for 3,000 rows).
    const due = sql`${chosen} ${this.#engine.dialect.skipLocked}`;
    const rows = await this.#engine.single(
      "claim work",
      (tx) =>
        tx.all<ClaimRow>`
        update work set state = 'running', fence = fence + 1, attempts = attempts + 1, woken = 0, owner = ${owner},
          lease_until = now_ms() + cast(${wholeMs(ttlMs)} as bigint)
        where id ${this.#engine.dialect.amongFirst(due)}
        returning id, kind, fence, attempts, max_attempts, payload, tenant, priority, vtime`,
      "with others",
    );
    rows.sort((a, b) => b.priority - a.priority || a.vtime - b.vtime || a.id - b.id);
    for (const { vtime } of rows) this.#order.passed(vtime);
    if (rows.length > 0) this.#reached("queue.claim.done");
    return rows.map((row) => ({
      id: row.id,
      fence: row.fence,
      kind: row.kind,
      payload: JSON.parse(row.payload),
      attempt: row.attempts,
      maxAttempts: row.max_attempts,
      tenant: row.tenant,
    }));
  }

  /** Keeps claims alive and answers the ids that still are; one that ran out is never revived. */
  async renew(claims: readonly Claim[], ttlMs: number): Promise<Set<number>> {
    if (claims.length === 0) return new Set();
    const rows = await this.#engine.single(
      "renew work",
      (tx) =>
        tx.all<{ id: number }>`update work set lease_until = now_ms() + cast(${wholeMs(ttlMs)} as bigint)
        where state = 'running' and lease_until > now_ms() and ${claimedBy(claims)} returning id`,
      "with others",
    );
    return new Set(rows.map((row) => row.id));
  }

  /** Stops the transaction unless the claim is the newest, and holds it until the transaction ends. */
  async guard(tx: Tx, claim: Claim): Promise<void> {
    const row = await tx.get`select 1 from work
      where id = ${claim.id} and fence = ${claim.fence} and state = 'running' ${this.#engine.dialect.forUpdate}`;
    if (!row) throw staleClaim(claim);
  }

  /** The same, and the item has come further: only attempts that get nowhere are counted. */
  async progressed(tx: Tx, claim: Claim): Promise<void> {
    const changed = await tx.run`update work set attempts = 1 where id = ${claim.id} and fence = ${claim.fence} and state = 'running'`;
    if (changed === 0) throw staleClaim(claim);
  }

  /** Done, together with everything else in the transaction; refused, with all of it, when another owner has taken over. */
  async settle(tx: Tx, claim: Claim): Promise<void> {
    this.#reached("queue.settle.before");
    const [settled] = await this.#delete(tx, [claim]);
    if (settled === undefined) throw staleClaim(claim);
  }

  /** Done, for items without further effects: answers the ids that were settled; the others belong to somebody else by now. */
  async settleAll(claims: readonly Claim[]): Promise<Set<number>> {
    if (claims.length === 0) return new Set();
    this.#reached("queue.settle.before");
    // Lane items are left to the slower path, which promotes their successors.
    const direct = await this.#engine.single(
      "settle work",
      (tx) =>
        tx.all<{
          id: number;
        }>`delete from work where state = 'running' and position is null and ${claimedBy(claims)} returning id`,
    );
    const settled = new Set(direct.map((row) => row.id));
    const rest = claims.filter((claim) => !settled.has(claim.id));
    if (rest.length > 0)
      for (const id of await this.#engine.transact("settle lanes", (tx) => this.#delete(tx, rest), "locked")) settled.add(id);
    return settled;
  }

  /** Back into the queue after a back-off, or to the dead letters when its attempts are used up. */
  async retry(tx: Tx, claim: Claim, error: string, delayMs?: number): Promise<"later" | "dead"> {
    const row = await tx.get<{ attempts: number; max_attempts: number }>`select attempts, max_attempts from work
      where id = ${claim.id} and fence = ${claim.fence} and state = 'running' ${this.#engine.dialect.forUpdate}`;
    if (!row) throw staleClaim(claim);
    if (row.attempts >= row.max_attempts) {
      await this.#bury(tx, [claim.id], error);
      return "dead";
    }
    const delay = delayMs ?? jitteredBackoff(row.attempts, this.#random, BACKOFF_MS, BACKOFF_MAX_MS);
    await tx.run`update work set state = 'parked', owner = null, lease_until = null, error = ${error},
      run_at = now_ms() + cast(${wholeMs(delay)} as bigint) where id = ${claim.id}`;
    tx.hint("work");
    return "later";
  }

  /** What runs now, of one kind, on whatever node; held until the transaction ends. */
  async running(tx: Tx, kind: string): Promise<(Claim & { readonly payload: unknown })[]> {
    const rows = await tx.all<{ id: number; fence: number; payload: string }>`select id, fence, payload from work
      where state = 'running' and kind = ${kind} order by id ${this.#engine.dialect.forUpdate}`;
    return rows.map(({ id, fence, payload }) => ({ id, fence, payload: JSON.parse(payload) }));
  }

  /** Takes items from whoever runs them, as if they had not been claimed. Their owners can settle and commit nothing more. */
  async handBackIn(tx: Tx, claims: readonly Claim[]): Promise<number> {
    tx.hint("work");
    return tx.run`update work set state = 'ready', owner = null, lease_until = null, attempts = attempts - 1
      where state = 'running' and ${claimedBy(claims)}`;
  }

  /** Hands unfinished items back at once, as if they had not been claimed: for a node that stops. */
  async handBack(claims: readonly Claim[]): Promise<number> {
    if (claims.length === 0) return 0;
    return this.#engine.single("hand back work", (tx) => this.handBackIn(tx, claims));
  }

  /** Waits, holding nothing but its lane, until it is un-parked or `maxMs` have passed. If that has happened already, it is ready at once. */
  async park(tx: Tx, claim: Claim, maxMs: number): Promise<void> {
    const changed =
      await tx.run`update work set state = case when woken = 1 then 'ready' else 'parked' end, owner = null, lease_until = null,
        attempts = 0, run_at = case when woken = 1 then now_ms() else now_ms() + cast(${wholeMs(maxMs)} as bigint) end, woken = 0
      where id = ${claim.id} and fence = ${claim.fence} and state = 'running'`;
    if (changed === 0) throw staleClaim(claim);
    tx.hint("work");
  }

  /**
   * Wakes a parked item. One that still runs remembers it, and will not park. A ready one is only touched: its lock keeps a claim
   * off until this transaction commits, so that whoever runs it sees what has happened.
   */
  async unpark(tx: Tx, id: number): Promise<boolean> {
    const changed = await tx.run`update work set woken = case when state = 'running' then 1 else 0 end,
        state = case when state = 'parked' then 'ready' else state end, run_at = case when state = 'parked' then now_ms() else run_at end,
        vtime = case when state = 'parked' then ${this.#order.tagged} else vtime end
      where id = ${id} and state in ('parked', 'running', 'ready')`;
    tx.hint("work");
    return changed > 0;
  }

  /** What an item asks for, held until the transaction ends; undefined: it is not there any more. */
  async hold(tx: Tx, id: number): Promise<unknown> {
    const row = await tx.get<{ payload: string }>`select payload from work where id = ${id} ${this.#engine.dialect.forUpdate}`;
    return row && JSON.parse(row.payload);
  }

  /** Removes an item whatever it is doing. Its owner, if it has one, can no longer settle or commit anything under its claim. */
  async cancel(tx: Tx, id: number): Promise<boolean> {
    const rows = await tx.all<CancelledRow>`delete from work where id = ${id} returning id, lane, state`;
    await this.#cancelled(tx, rows);
    return rows.length > 0;
  }

  /** One that waits or runs. */
  async item(reads: Reads, id: number): Promise<{ readonly id: number; readonly payload: unknown } | undefined> {
    const row = await reads.get<{ payload: string }>`select payload from work where id = ${id}`;
    return row && { id, payload: JSON.parse(row.payload) };
  }

  /** What waits or runs in a lane, in its order. */
  async inLane(reads: Reads, lane: Scope): Promise<{ readonly id: number; readonly payload: unknown; readonly running: boolean }[]> {
    const rows = await reads.all<{ id: number; payload: string; state: string }>`select id, payload, state from work
      where lane = ${scopeKey(lane)} and position is not null order by position`;
    return rows.map((row) => ({ id: row.id, payload: JSON.parse(row.payload), running: row.state === "running" }));
  }

  /** Removes several items, whatever they are doing, and answers which of them were still there. */
  async cancelAll(tx: Tx, ids: readonly number[]): Promise<Set<number>> {
    // Locked in one order, so that two who remove the same items do not wait for each other.
    await tx.all`select id from work where id in ${list(ids)} order by id ${this.#engine.dialect.forUpdate}`;
    const rows = await tx.all<CancelledRow>`delete from work where id in ${list(ids)} returning lane, id, state`;
    await this.#cancelled(tx, rows);
    return new Set(rows.map((row) => row.id));
  }

  /** Brings back what its owner has let go: expired leases and parked items whose time is up. Any node may call it, often. */
  async reap(): Promise<{ readonly revived: number; readonly buried: number }> {
    const due = await this.#engine.reads.get`select 1 from work where state = 'running' and lease_until <= now_ms()
      union all select 1 from work where state = 'parked' and run_at <= now_ms() limit 1`;
    if (!due) return { revived: 0, buried: 0 };
    return this.#engine.transact(
      "reap work",
      async (tx) => {
        const lost = await tx.all<{ id: number; spent: number }>`
          select id, case when attempts >= max_attempts then 1 else 0 end as spent from work
          where state = 'running' and lease_until <= now_ms() order by id limit 500 ${this.#engine.dialect.skipLocked}`;
        const buried = lost.filter((row) => row.spent === 1).map((row) => row.id);
        await this.#bury(tx, buried, "its owner disappeared on every attempt");
        const again = lost.filter((row) => row.spent === 0).map((row) => row.id);
        const revived =
          await tx.run`update work set state = 'ready', owner = null, lease_until = null, run_at = now_ms() where id in ${list(again)}`;
        const woken = await this.#wakeDue(tx);
        tx.hint("work");
        return { revived: revived + woken, buried: buried.length };
      },
      "locked",
    );
  }

  /** For a node that is certain to be the only one, as behind the lock of an embedded home: every claim it finds is a dead process's. */
  async letGoOfAll(): Promise<void> {
    await this.#engine.single("let go of all work", (tx) => tx.run`update work set lease_until = 0 where state = 'running'`);
  }

  async dead(limit: number, kinds?: readonly string[]): Promise<DeadWork[]> {
    const rows = await this.#engine.reads.all<WorkRow>`
      select id, kind, fence, attempts, max_attempts, payload, error from work
      where state = 'dead' ${ofKinds(kinds)} order by id limit ${limit}`;
    return rows.map((row) => ({ id: row.id, kind: row.kind, payload: JSON.parse(row.payload), attempts: row.attempts, error: row.error }));
  }

  /** A dead letter gets its attempts back, at the end of its lane. */
  async revive(tx: Tx, id: number): Promise<boolean> {
    const row = await tx.get<LaneRow>`select id, lane from work where id = ${id} and state = 'dead' ${this.#engine.dialect.forUpdate}`;
    if (!row) return false;
    const place = row.lane === null ? { position: null, first: true } : await enterLane(tx, row.lane);
    await tx.run`update work set state = ${place.first ? "ready" : "queued"}, position = cast(${place.position} as bigint),
      attempts = 0, run_at = now_ms(), vtime = ${this.#order.tagged} where id = ${id}`;
    tx.hint("work");
    return true;
  }

  async counts(): Promise<Record<string, number>> {
    const rows = await this.#engine.reads.all<{ state: string; count: number }>`select state, count(*) as count from work group by state`;
    return Object.fromEntries(rows.map((row) => [row.state, row.count]));
  }

  /** Resolves when there may be something to claim: a hint, an item whose time has come, or the poll. `seen` is the version before the last look. */
  async wait(seen: number, signal: AbortSignal): Promise<void> {
    const next = await this.#engine.reads.get<{
      due: number | null;
    }>`select min(run_at) - now_ms() as due from work where state = 'parked'`;
    const due = next?.due ?? POLL_MS;
    if (due <= 0) return this.#engine.single("wake what is due", (tx) => this.#wakeDue(tx)).then(() => {});
    await this.#engine.wake.wait("work", seen, Math.min(POLL_MS, due), signal);
  }

  version(topic: "work" | "taken" = "work"): number {
    return this.#engine.wake.version(topic);
  }

  /** Resolves when something that ran may have been taken from its owner since `seen`. Costs nothing while nothing is. */
  async waitForTaken(seen: number, signal: AbortSignal): Promise<void> {
    await this.#engine.wake.wait("taken", seen, LONG_MS, signal);
  }

  #wakeDue(tx: Tx): Promise<number> {
    return tx.run`update work set state = 'ready', vtime = ${this.#order.tagged} where state = 'parked' and run_at <= now_ms()`;
  }

  async #delete(tx: Tx, claims: readonly Claim[]): Promise<number[]> {
    const rows = await tx.all<LaneRow>`delete from work where state = 'running' and ${claimedBy(claims)} returning id, lane`;
    await this.#advance(tx, rows);
    return rows.map((row) => row.id);
  }

  async #cancelled(tx: Tx, rows: readonly CancelledRow[]): Promise<void> {
    // Whoever runs it looks after its claims at once, on whatever node.
    if (rows.some(({ state }) => state === "running")) tx.hint("taken");
    await this.#advance(tx, rows);
  }

  async #bury(tx: Tx, ids: readonly number[], error: string): Promise<void> {
    if (ids.length === 0) return;
    const rows = await tx.all<LaneRow>`update work set state = 'dead', position = null, owner = null, lease_until = null, error = ${error}
      where id in ${list(ids)} returning id, lane`;
    await this.#advance(tx, rows);
  }

  async #advance(tx: Tx, left: readonly LaneRow[]): Promise<void> {
    const lanes = [...new Set(left.flatMap((row) => (row.lane === null ? [] : [row.lane])))];
    if (lanes.length === 0) return;
    await advanceLanes(this.#engine.dialect, tx, lanes, this.#order.tagged);
    tx.hint("work");
  }
}

/** Every tenant with something ready, one probe each: the index is not read, it is jumped along. */
const WAITING_TENANTS = sql`with recursive waiting (tenant) as (
    select min(tenant) from work where state = 'ready' and tenant is not null
    union all select (select min(w.tenant) from work as w where w.state = 'ready' and w.tenant is not null and w.tenant > waiting.tenant)
      from waiting where waiting.tenant is not null)`;

/** Lists come in few lengths, so that few statements are prepared. */
function padded(values: readonly string[]): string[] {
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return [...values, ...Array<string>(length - values.length).fill(values[0] as string)];
}

function ofKinds(kinds: readonly string[] | undefined): SqlFragment {
  return kinds ? sql`and kind in ${list(kinds)}` : code("");
}

/** `(id, fence) in …`, and for the one claim of most callers the plain form, which is cheaper to execute. */
function claimedBy(claims: readonly Claim[]): SqlFragment {
  const [first] = claims;
  if (first && claims.length === 1) return sql`id = ${first.id} and fence = ${first.fence}`;
  return sql`(id, fence) in ${pairs(claims.map((claim) => [claim.id, claim.fence] as const))}`;
}

function staleClaim(claim: Claim): Failure {
  return new Failure("fence.stale", `work item ${claim.id} is no longer claimed with fence ${claim.fence}`);
}
