import { setTimeout as sleep } from "node:timers/promises";
import { asFailure, isFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { ClaimedWork, WorkQueue } from "../../store/work-queue.ts";
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
  readonly leaseMs: number;
}

interface Running {
  readonly item: ClaimedWork;
  readonly lost: AbortController;
  readonly finished: Promise<void>;
}

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
  readonly #running = new Map<number, Running>();
  readonly #stopping = new AbortController();
  #freed: () => void = () => {};
  /** Places that are kept for work which is being added, and whose it will be. */
  readonly #kept = new Set<{ readonly tenant: string }>();
  /** There was nothing to claim at the last look, and nothing has been heard of since. */
  #isIdle = false;
  /** Places that have become free. */
  #ended = 0;
  #loop: Promise<void> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#kinds = Object.keys(options.handlers);
  }

  /** A second time changes nothing. */
  start(): void {
    if (this.#loop) return;
    this.#heartbeat = setInterval(() => void this.#renew(), this.#options.leaseMs / 3);
    this.#loop = this.#run();
    void this.#watch();
  }

  /** Lets running items finish for `graceMs`, then hands the rest back to whoever claims next. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    this.#freed();
    await this.#loop;
    await this.#finished(graceMs);
    const unfinished = [...this.#running.values()];
    for (const { lost } of unfinished) lost.abort();
    await this.#finished(LETTING_GO_MS);
    clearInterval(this.#heartbeat);
    await this.#options.queue.handBack(unfinished.map(({ item }) => item));
  }

  /**
   * A free place for work of this tenant that is about to be added, and claimed as it is; null: there is none, or others may be waiting for it.
   */
  keepPlace(tenant: string): { readonly owner: string; readonly ttlMs: number; begin(item: ClaimedWork): void; giveUp(): void } | null {
    if (!this.#isIdle || this.#stopping.signal.aborted) return null;
    const { items, without } = this.#room();
    if (items === 0 || without.includes(tenant)) return null;
    const place = { tenant };
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
      else this.#begin(item);
    };
    return { owner: this.#options.owner, ttlMs: this.#options.leaseMs, begin, giveUp };
  }

  /** Stops, now and not at the next renewal, what was taken from this node. */
  letGo(): Promise<void> {
    return this.#renew();
  }

  /** Whatever is taken from this node is let go at once. */
  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    const { queue } = this.#options;
    let seen = queue.version("taken");
    while (!signal.aborted) {
      await queue.waitForTaken(seen, signal);
      seen = queue.version("taken");
      if (!signal.aborted) await this.#renew();
    }
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
    const items = await queue.claim(owner, most, leaseMs, this.#kinds, without);
    if (this.#stopping.signal.aborted) await queue.handBack(items);
    else for (const item of items) this.#begin(item);
    const heldBack = without.length > 0;
    // Where somebody is left out, the queue is not always looked through to its end.
    return { isAll: heldBack ? items.length === 0 : items.length < most, heldBack };
  }

  #room(): Room {
    const { limit, tenants } = this.#options;
    return roomFor(limit(), this.#tenants(), (tenants?.() ?? 1) > 1);
  }

  *#tenants(): Generator<string | null> {
    for (const { item } of this.#running.values()) yield item.tenant;
    for (const { tenant } of this.#kept) yield tenant;
  }

  #free(): void {
    this.#ended++;
    this.#freed();
  }

  #begin(item: ClaimedWork): void {
    const lost = new AbortController();
    // It came back to us while we still had it: what runs under the old claim is void.
    this.#running.get(item.id)?.lost.abort();
    const finished = this.#handle(item, lost.signal).finally(() => {
      if (this.#running.get(item.id)?.item === item) this.#running.delete(item.id);
      this.#free();
    });
    this.#running.set(item.id, { item, lost, finished });
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

  async #renew(): Promise<void> {
    const held = [...this.#running.values()];
    if (held.length === 0) return;
    try {
      const alive = await this.#options.queue.renew(
        held.map(({ item }) => item),
        this.#options.leaseMs,
      );
      for (const { item, lost } of held) if (!alive.has(item.id)) lost.abort();
    } catch (error) {
      this.#options.log.warn("claims could not be renewed; trying again", { code: asFailure(error).code });
    }
  }

  async #finished(ms: number): Promise<void> {
    const all = Promise.all([...this.#running.values()].map(({ finished }) => finished));
    const enough = new AbortController();
    await Promise.race([all, sleep(ms, undefined, { signal: enough.signal }).catch(() => {})]);
    enough.abort();
  }
}
