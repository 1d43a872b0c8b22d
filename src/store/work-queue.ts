import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { Random } from "../kernel/random.ts";
import type { Scope } from "../kernel/scope.ts";
import { claimWork, renewClaims } from "./claim-work.ts";
import type { Engine, Reads, Tx } from "./engine.ts";
import { FairOrder } from "./fair-order.ts";
import { scopeKey, wholeMs } from "./keys.ts";
import { enterLane } from "./lanes.ts";
import { handBackWork, type Reaped, reapWork, wakeDue } from "./reap-work.ts";
import { cancelWork, parkWork, retryWork, settleAllWork, settleWork, unparkWork } from "./settle-work.ts";
import { list } from "./sql.ts";
import { type Claim, type ClaimedWork, type DeadWork, type NewWork, ofKinds, type QueueParts, staleClaim } from "./work-items.ts";
import { WorkWatch } from "./work-watch.ts";

export type { Claim, ClaimedWork, DeadWork, NewWork } from "./work-items.ts";

/** A node that takes what it adds. */
export interface Taker {
  readonly owner: string;
  readonly ttlMs: number;
}

const MAX_ATTEMPTS = 5;
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
  readonly #parts: QueueParts;
  /** How this node learns of work. */
  readonly watch: WorkWatch;

  constructor(engine: Engine, random: Random, reached: ReachedPoint) {
    this.#engine = engine;
    this.watch = new WorkWatch(engine, () => engine.single("wake what is due", (tx) => wakeDue(this.#parts, tx)));
    this.#parts = { engine, random, reached, order: new FairOrder(engine.dialect.name === "sqlite"), watch: this.watch };
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
    const vtime = tenant && isReady ? await this.#parts.order.next(tx, tenant.name, priority, cost) : 0;
    if (taker) this.#parts.order.passed(vtime);
    else if (isReady) this.watch.tell(tx, kind, tenant?.name ?? null);
    else if (place.first) this.watch.dueIn(delayMs);
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
    return claimWork(this.#parts, { owner, limit, ttlMs, kinds, without });
  }

  /**
   * Keeps claims alive and answers the ids that still are; one that ran out is never revived. `skip`: those that a transaction holds are left
   * out, and nobody waits for it; whether they are alive is not known then.
   */
  renew(claims: readonly Claim[], ttlMs: number, locked: "skip" | "wait" = "wait"): Promise<Set<number>> {
    return renewClaims(this.#parts, claims, ttlMs, locked);
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
  settle(tx: Tx, claim: Claim): Promise<void> {
    return settleWork(this.#parts, tx, claim);
  }

  /** Done, for items without further effects: answers the ids that were settled; the others belong to somebody else by now. */
  settleAll(claims: readonly Claim[]): Promise<Set<number>> {
    return settleAllWork(this.#parts, claims);
  }

  /** Back into the queue after a back-off, or to the dead letters when its attempts are used up. */
  retry(tx: Tx, claim: Claim, error: string, delayMs?: number): Promise<"later" | "dead"> {
    return retryWork(this.#parts, tx, claim, error, delayMs);
  }

  /** What runs now, of one kind, on whatever node; held until the transaction ends. */
  async running(tx: Tx, kind: string): Promise<(Claim & { readonly payload: unknown })[]> {
    const rows = await tx.all<{ id: number; fence: number; payload: string }>`select id, fence, payload from work
      where state = 'running' and kind = ${kind} order by id ${this.#engine.dialect.forUpdate}`;
    return rows.map(({ id, fence, payload }) => ({ id, fence, payload: JSON.parse(payload) }));
  }

  /** Takes items from whoever runs them, as if they had not been claimed. Their owners can settle and commit nothing more. */
  handBackIn(tx: Tx, claims: readonly Claim[]): Promise<number> {
    return handBackWork(this.#parts, tx, claims);
  }

  /** Hands unfinished items back at once, as if they had not been claimed: for a node that stops. */
  async handBack(claims: readonly Claim[]): Promise<number> {
    if (claims.length === 0) return 0;
    return this.#engine.single("hand back work", (tx) => this.handBackIn(tx, claims));
  }

  /** Waits, holding nothing but its lane, until it is un-parked or `maxMs` have passed. If that has happened already, it is ready at once. */
  park(tx: Tx, claim: Claim, maxMs: number): Promise<void> {
    return parkWork(this.#parts, tx, claim, maxMs);
  }

  /**
   * Wakes a parked item. One that still runs remembers it, and will not park. A ready one is only touched: its lock keeps a claim
   * off until this transaction commits, so that whoever runs it sees what has happened.
   */
  unpark(tx: Tx, id: number): Promise<boolean> {
    return unparkWork(this.#parts, tx, id);
  }

  /** What an item asks for, held until the transaction ends; undefined: it is not there any more. */
  async hold(tx: Tx, id: number): Promise<unknown> {
    const row = await tx.get<{ payload: string }>`select payload from work where id = ${id} ${this.#engine.dialect.forUpdate}`;
    return row && JSON.parse(row.payload);
  }

  /** Removes an item whatever it is doing. Its owner, if it has one, can no longer settle or commit anything under its claim. */
  async cancel(tx: Tx, id: number): Promise<boolean> {
    return (await cancelWork(this.#parts, tx, [id])).has(id);
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
  cancelAll(tx: Tx, ids: readonly number[]): Promise<Set<number>> {
    return cancelWork(this.#parts, tx, ids);
  }

  /** Brings back what its owner has let go: expired leases and parked items whose time is up. Any node may call it, often. */
  reap(): Promise<Reaped> {
    return reapWork(this.#parts);
  }

  /** For a node that is certain to be the only one, as behind the lock of an embedded home: every claim it finds is a dead process's. */
  async letGoOfAll(): Promise<void> {
    await this.#engine.single("let go of all work", (tx) => tx.run`update work set lease_until = 0 where state = 'running'`);
  }

  /** Of owners that are certain to be dead. */
  async letGoOf(owners: readonly string[]): Promise<void> {
    if (owners.length === 0) return;
    await this.#engine.single(
      "let go of work",
      (tx) => tx.run`update work set lease_until = 0 where state = 'running' and owner in ${list(owners)}`,
    );
  }

  /** What was given up and holds its lane until it is removed (`cancel`), by whoever writes down what became of it. */
  async dead(limit: number, kinds?: readonly string[]): Promise<DeadWork[]> {
    const rows = await this.#engine.reads.all<Omit<DeadWork, "payload"> & { payload: string }>`
      select id, kind, payload, attempts, error from work
      where state = 'dead' ${ofKinds(kinds)} order by id limit ${limit}`;
    return rows.map((row) => ({ ...row, payload: JSON.parse(row.payload) }));
  }

  async counts(): Promise<Record<string, number>> {
    const rows = await this.#engine.reads.all<{ state: string; count: number }>`select state, count(*) as count from work group by state`;
    return Object.fromEntries(rows.map((row) => [row.state, row.count]));
  }

  /** Resolves when there may be something to claim: a hint, an item whose time has come, or the poll. `seen` is the version before the last look. */
  wait(seen: number, signal: AbortSignal): Promise<void> {
    return this.watch.wait(seen, signal);
  }

  version(topic: "work" | "taken" = "work"): number {
    return this.#engine.wake.version(topic);
  }

  /** Resolves when something that ran may have been taken from its owner since `seen`. Costs nothing while nothing is. */
  async waitForTaken(seen: number, signal: AbortSignal): Promise<void> {
    await this.#engine.wake.wait("taken", seen, LONG_MS, signal);
  }
}
