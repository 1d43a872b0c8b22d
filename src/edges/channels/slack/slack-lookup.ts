import type { Clock } from "../../../kernel/clock.ts";
import { firstOf } from "../../../kernel/first-of.ts";
import { sendTroubleOf } from "./slack-trouble.ts";

const MAX_KEPT = 5_000;
/** Slack wants its answer within three seconds, and what is asked here is only nice to know. */
const ASK_MS = 1_500;

/**
 * Something small that Slack is asked about a key, and remembered for a while. Where it cannot be had, a message does not wait for it:
 * `otherwise` is taken instead.
 */
export class SlackLookup<Value> {
  readonly #ask: (key: string, signal: AbortSignal) => Promise<Value>;
  readonly #otherwise: Value;
  readonly #clock: Clock;
  readonly #known = new Map<string, Promise<Value>>();
  #pausedUntil = 0;

  constructor(clock: Clock, otherwise: Value, ask: (key: string, signal: AbortSignal) => Promise<Value>) {
    this.#clock = clock;
    this.#otherwise = otherwise;
    this.#ask = ask;
  }

  async of(key: string): Promise<Value> {
    const known = this.#known.get(key);
    if (known) return known;
    if (this.#clock.now() < this.#pausedUntil) return this.#otherwise;
    const asked = this.#asked(key);
    this.#known.set(key, asked);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KEPT) break;
      this.#known.delete(oldest);
    }
    return asked;
  }

  async #asked(key: string): Promise<Value> {
    const ending = firstOf([], ASK_MS);
    try {
      return await this.#ask(key, ending.signal);
    } catch (error) {
      const { kind, afterMs } = sendTroubleOf(error);
      if (afterMs !== null) this.#pausedUntil = this.#clock.now() + afterMs;
      // What is refused would be refused again; everything else may be known the next time.
      if (kind !== "refused") this.#known.delete(key);
      return this.#otherwise;
    } finally {
      ending.over();
    }
  }
}
