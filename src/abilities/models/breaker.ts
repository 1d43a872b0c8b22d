import type { Clock } from "../../kernel/clock.ts";

/** What a breaker lets pass: everything, or one attempt to see whether it is over. */
export interface Admission {
  readonly admitted: boolean;
  /** After which time to ask again. */
  readonly waitMs: number;
  /** It is the one by which the others find out. */
  readonly isProbe: boolean;
}

const FAILURES = 5;
const REST_MS = 5_000;
const MAX_REST_MS = 60_000;
/** While somebody else finds out. */
const PROBED_MS = 1_000;

/**
 * One for each provider, for all who ask it.
 *   closed → open: 5 failures in a row, whether nothing came or what came broke off;
 *   open → half open: after a rest of 5 s, which doubles up to a minute each time it opens again before an answer was whole;
 *   half open: one attempt at a time; something comes → closed, it fails → open.
 */
export class Breaker {
  readonly #clock: Clock;
  #failures = 0;
  #restMs = REST_MS;
  #openUntil: number | null = null;
  #probing = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whoever is admitted says later how it went. */
  admit(): Admission {
    if (this.#openUntil === null) return { admitted: true, waitMs: 0, isProbe: false };
    const waitMs = this.#openUntil - this.#clock.now();
    if (waitMs > 0) return { admitted: false, waitMs, isProbe: false };
    if (this.#probing) return { admitted: false, waitMs: PROBED_MS, isProbe: false };
    this.#probing = true;
    return { admitted: true, waitMs: 0, isProbe: true };
  }

  /** Something comes: nobody has to wait until a long answer is whole. Whether it will be is not known yet. */
  answers(isProbe: boolean): void {
    if (isProbe) this.#close();
  }

  /** The answer was whole. */
  succeeded(): void {
    this.#close();
    this.#failures = 0;
    this.#restMs = REST_MS;
  }

  failed(isProbe = false): void {
    this.#failures++;
    // Of those that were under way when it opened, only the probe says anything new.
    if (this.#openUntil !== null && !isProbe) return;
    if (this.#failures < FAILURES) return;
    this.#openUntil = this.#clock.now() + this.#restMs;
    this.#restMs = Math.min(MAX_REST_MS, this.#restMs * 2);
    this.#probing = false;
  }

  /** It was not the provider's doing: an attempt that was given up, or a request that nobody could serve. */
  undecided(isProbe: boolean): void {
    if (isProbe) this.#probing = false;
  }

  #close(): void {
    this.#openUntil = null;
    this.#probing = false;
  }
}
