import { setTimeout as sleep } from "node:timers/promises";

/** Whoever has asked within this time asks again and again: a proxy. */
const WATCHED_MS = 5_000;
/** Until a proxy that asks once a second has asked, and has sent the last request elsewhere. */
const NOTICE_MS = 1_500;

/**
 * Whether this node takes work, as those see it who send it here.
 *
 *   ready → leaving (says so, and still takes what comes) → refusing
 *
 * A proxy hears of it only when it asks next: what it sends until then must not be refused. Where nobody asks nobody is waited for.
 */
export class Readiness {
  #state: "ready" | "leaving" | "refusing" = "ready";
  #askedAt = Number.NEGATIVE_INFINITY;

  ask(): boolean {
    this.#askedAt = performance.now();
    return this.#state === "ready";
  }

  get isRefusing(): boolean {
    return this.#state === "refusing";
  }

  async leave(): Promise<void> {
    this.#state = "leaving";
    if (performance.now() - this.#askedAt < WATCHED_MS) await sleep(NOTICE_MS);
    this.#state = "refusing";
  }
}
