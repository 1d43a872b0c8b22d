import { setTimeout as sleep } from "node:timers/promises";
import { asFailure, isFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import { Roster } from "../../kernel/roster.ts";
import type { ClaimedWork, WorkQueue } from "../../store/work-queue.ts";
import { type KeptClaim, KeptClaims } from "./kept-claims.ts";
import { type Room, roomFor } from "./slots.ts";

/** Does one item and settles it, whatever comes of it. The signal aborts when the item is no longer this node's. */
export type Handler = (item: ClaimedWork, lost: AbortSignal) => Promise<void>;

export interface DispatcherOptions {
  readonly queue: WorkQueue;
  /** This node, as the owner of its claims. */
  readonly owner: string;
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly log: Log;
  /** How many items run at once; it may be another every time it is asked. */
  readonly limit: () => number;
  /** How many there are whose work it may be. Where there are others, nobody gets all slots; absent: there are none. */
  readonly tenants?: () => number;
  /** Those whose work other nodes do: none of it is taken here. */
  readonly elsewhere?: () => ReadonlySet<string>;
  readonly leaseMs: number;
}

interface Running extends KeptClaim {
  readonly finished: Promise<void>;
}

const NOBODY: ReadonlySet<string> = new Set();
const AFTER_ERROR_MS = 500;
/** How late a higher limit may be noticed by a node that is full. */
const FULL_MS = 1_000;
/** How long an item may take to notice that it was stopped. */
const LETTING_GO_MS = 1_000;

/**
 * Takes work rows and runs them, many at once. A claim is kept alive as long as its item runs; one that was lost is aborted.
 *
 *   idle → running → stopping (finishes what runs, claims nothing) → stopped (hands back what did not finish)
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #kinds: readonly string[];
  readonly #running = new Roster<number, Running>();
  readonly #stopping = new AbortController();
  #freed: () => void = () => {};
  /** Places that are kept for work which is being added, and whose it will be. */
  readonly #kept = new Set<{ readonly tenant: string }>();
  /** There was nothing to claim at the last look, and nothing has been heard of since. */
  #isIdle = false;
  /** Places that have become free. */
  #ended = 0;
  #leave: () => void = () => {};
  #loop: Promise<void> | undefined;
  readonly #claims: KeptClaims;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#kinds = Object.keys(options.handlers);
    this.#claims = new KeptClaims(options.queue, options.log, options.leaseMs, () => this.#running.values());
  }

  /** A second time changes nothing. */
  start(): void {
    if (this.#loop) return;
    const { watch } = this.#options.queue;
    this.#leave = watch.addTaker((kind, tenant) => this.#takes(kind, tenant));
    this.#claims.start(this.#stopping.signal);
    this.#loop = this.#run();
  }

  /** Lets running items finish for `graceMs`, then hands the rest back to whoever claims next. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    this.#leave();
    this.#freed();
    await this.#loop;
    await this.#finished(graceMs);
    const unfinished = [...this.#running.values()];
    for (const { lost } of unfinished) lost.abort();
    await this.#finished(LETTING_GO_MS);
    this.#claims.stop();
    await this.#options.queue.handBack(unfinished.map(({ item }) => item));
  }

  /**
   * A free place for work of this tenant that is about to be added, and claimed as it is; null: there is none, or others may be waiting for it.
   */
  keepPlace(tenant: string): { readonly owner: string; readonly ttlMs: number; begin(item: ClaimedWork): void; giveUp(): void } | null {
    if (!this.#isIdle || this.#stopping.signal.aborted) return null;
    const { items, without } = this.#room();
    if (items === 0 || without.includes(tenant) || this.#elsewhere().has(tenant)) return null;
    const place = { tenant };
    const asked = performance.now();
    this.#kept.add(place);
    const giveUp = (): void => {
      if (this.#kept.delete(place)) this.#free();
    };
    const begin = (item: ClaimedWork): void => {
      this.#kept.delete(place);
      // Stopped meanwhile: whoever is next finds it, at the latest when its lease has run out.
      if (this.#stopping.signal.aborted)
        this.#options.queue.handBack([item]).catch((error: unknown) => {
          this.#options.log.warn("work could not be handed back", { id: item.id, code: asFailure(error).code });
        });
      else this.#begin(item, asked);
    };
    return { owner: this.#options.owner, ttlMs: this.#options.leaseMs, begin, giveUp };
  }

  /** Stops, now and not at the next renewal, what was taken from this node. */
  letGo(): Promise<void> {
    return this.#claims.renew();
  }

  async #run(): Promise<void> {
    const { queue, log } = this.#options;
    while (!this.#stopping.signal.aborted) {
      try {
        const seen = queue.version();
        const ended = this.#ended;
        const { isAll, heldBack } = await this.#claim();
        if (isAll && !(heldBack && ended !== this.#ended)) await this.#idle(seen, heldBack);
        if (this.#running.size >= this.#options.limit()) await this.#slot();
      } catch (error) {
        log.warn("work cannot be claimed; trying again", { code: asFailure(error).code });
        await sleep(AFTER_ERROR_MS, undefined, { signal: this.#stopping.signal }).catch(() => {});
      }
    }
  }

  /** `isAll`: there was no more to claim. `heldBack`: somebody may have no more slots until one is free. */
  async #claim(): Promise<{ readonly isAll: boolean; readonly heldBack: boolean }> {
    const { queue, owner, leaseMs } = this.#options;
    const { items: most, without } = this.#room();
    if (most === 0) return { isAll: true, heldBack: true };
    const leftOut = [...without, ...this.#elsewhere()];
    const asked = performance.now();
    const items = await queue.claim(owner, most, leaseMs, this.#kinds, leftOut);
    if (this.#stopping.signal.aborted) await queue.handBack(items);
    else for (const item of items) this.#begin(item, asked);
    if (items.length > 0 && this.#leavesSome()) queue.watch.offer();
    const heldBack = without.length > 0;
    // Where somebody is left out, the queue is not always looked through to its end.
    return { isAll: leftOut.length > 0 ? items.length === 0 : items.length < most, heldBack };
  }

  #elsewhere(): ReadonlySet<string> {
    return this.#options.elsewhere?.() ?? NOBODY;
  }

  #room(): Room {
    const { limit, tenants } = this.#options;
    return roomFor(limit(), this.#tenants(), (tenants?.() ?? 1) > 1);
  }

  /** Of whatever else there is, others may take what this node has no place for. */
  #leavesSome(): boolean {
    const { items, without } = this.#room();
    return items === 0 || without.length > 0;
  }

  /** Whether it would be claimed here at once; without a tenant, whosever it is. */
  #takes(kind?: string, tenant?: string | null): boolean {
    if (this.#stopping.signal.aborted || (kind !== undefined && !this.#kinds.includes(kind))) return false;
    const { items, without } = this.#room();
    const elsewhere = this.#elsewhere();
    if (items === 0) return false;
    if (tenant === undefined) return without.length === 0 && elsewhere.size === 0;
    return !without.includes(tenant) && !(tenant !== null && elsewhere.has(tenant));
  }

  *#tenants(): Generator<string | null> {
    for (const { item } of this.#running.values()) yield item.tenant;
    for (const { tenant } of this.#kept) yield tenant;
  }

  #free(): void {
    this.#ended++;
    this.#freed();
  }

  /** `asked`: when its claim was. The database has heard of it later: a claim is never longer here than there. */
  #begin(item: ClaimedWork, asked: number): void {
    const lost = new AbortController();
    // It came back to us while we still had it: what runs under the old claim is void.
    this.#running.get(item.id)?.lost.abort();
    const finished = this.#handle(item, lost.signal).finally(() => {
      if (this.#running.get(item.id)?.item === item) this.#running.delete(item.id);
      this.#free();
    });
    this.#running.set(item.id, { item, lost, finished, mineUntil: asked + this.#options.leaseMs });
  }

  async #handle(item: ClaimedWork, lost: AbortSignal): Promise<void> {
    try {
      await this.#options.handlers[item.kind]?.(item, lost);
    } catch (error) {
      // It could not even record its failure: the lease runs out, and the item is found again.
      if (!isFailure(error, "fence.stale"))
        this.#options.log.error("work was left unfinished", {
          kind: item.kind,
          id: item.id,
          code: asFailure(error).code,
          error: asFailure(error).message,
        });
    }
  }

  /** Until there may be something to claim: a hint, or an item that ends where somebody is held back. */
  async #idle(seen: number, heldBack: boolean): Promise<void> {
    const { queue } = this.#options;
    if (!heldBack) {
      this.#isIdle = true;
      try {
        return await queue.wait(seen, this.#stopping.signal);
      } finally {
        this.#isIdle = false;
      }
    }
    const ended = new AbortController();
    this.#freed = () => ended.abort();
    if (!this.#stopping.signal.aborted) await queue.wait(seen, ended.signal);
  }

  async #slot(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, FULL_MS);
    this.#freed = resolve;
    if (this.#stopping.signal.aborted || this.#running.size < this.#options.limit()) resolve();
    await promise;
    clearTimeout(timer);
  }

  async #finished(ms: number): Promise<void> {
    const all = Promise.all([...this.#running.values()].map(({ finished }) => finished));
    const enough = new AbortController();
    await Promise.race([all, sleep(ms, undefined, { signal: enough.signal }).catch(() => {})]);
    enough.abort();
  }
}
