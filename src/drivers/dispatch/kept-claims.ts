import { asFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { ClaimedWork, WorkQueue } from "../../store/work-queue.ts";

export interface KeptClaim {
  readonly item: ClaimedWork;
  /** Nobody else has it before this, whatever becomes of the database. */
  mineUntil: number;
  readonly lost: AbortController;
}

/** Of a lease: how often it is looked whether one is about to run out unsaid, and how much of it is left then. */
const SILENCE = 1 / 10;

/** Keeps the claims of what runs alive, and stops what this node has lost, or cannot say that it has not. */
export class KeptClaims {
  readonly #queue: WorkQueue;
  readonly #log: Log;
  readonly #leaseMs: number;
  readonly #running: () => Iterable<KeptClaim>;
  #heartbeat: NodeJS.Timeout | undefined;
  #silence: NodeJS.Timeout | undefined;

  constructor(queue: WorkQueue, log: Log, leaseMs: number, running: () => Iterable<KeptClaim>) {
    this.#queue = queue;
    this.#log = log;
    this.#leaseMs = leaseMs;
    this.#running = running;
  }

  /** Whatever is taken from this node is let go at once until the signal aborts, and with the next renewal until `stop`. */
  start(signal: AbortSignal): void {
    this.#heartbeat = setInterval(() => void this.renew(), this.#leaseMs / 3);
    this.#silence = setInterval(() => this.#giveUpSilent(), this.#leaseMs * SILENCE);
    void this.#watch(signal);
  }

  stop(): void {
    clearInterval(this.#heartbeat);
    clearInterval(this.#silence);
  }

  async renew(): Promise<void> {
    try {
      const held = [...this.#running()].filter(({ lost }) => !lost.signal.aborted);
      // One that a transaction of ours holds, which waits for somebody else's, must not cost us all the others.
      const unanswered = await this.#renewed(held, "skip");
      for (const { lost } of await this.#renewed(unanswered, "wait")) lost.abort();
    } catch (error) {
      this.#log.warn("claims could not be renewed; trying again", { code: asFailure(error).code });
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    let seen = this.#queue.version("taken");
    while (!signal.aborted) {
      await this.#queue.waitForTaken(seen, signal);
      seen = this.#queue.version("taken");
      if (!signal.aborted) await this.renew();
    }
  }

  /** Answers those that were not. */
  async #renewed(held: readonly KeptClaim[], locked: "skip" | "wait"): Promise<KeptClaim[]> {
    if (held.length === 0) return [];
    // The lease begins again when the database hears of it, which is later: it is never longer here than there.
    const asked = performance.now();
    const claims = held.map(({ item }) => item);
    const alive = await this.#queue.renew(claims, this.#leaseMs, locked);
    for (const claim of held) if (alive.has(claim.item.id)) claim.mineUntil = Math.max(claim.mineUntil, asked + this.#leaseMs);
    return held.filter(({ item }) => !alive.has(item.id));
  }

  /**
   * Whoever cannot say that it is still there stops before somebody else may begin: cut off from the database, or stopped for a while, it
   * would ask its model on beside whoever has taken over.
   */
  #giveUpSilent(): void {
    const soon = performance.now() + this.#leaseMs * SILENCE;
    for (const { item, lost, mineUntil } of this.#running()) {
      if (mineUntil > soon || lost.signal.aborted) continue;
      this.#log.warn("work is given up: the database has not heard of this node for the time of a lease", { id: item.id });
      lost.abort();
    }
  }
}
