import { setTimeout as sleep } from "node:timers/promises";
import type { Gauge } from "./metrics.ts";

/** Asks the database, and answers what it found as measurements. */
export type Look = () => Promise<readonly Gauge[]>;

/** Anybody may ask for measurements as often as they like; the database is asked once in this time. */
const FRESH_MS = 1_000;
/** Of a database that does not answer; the measurements of the process itself are told all the same. */
const LONGEST_MS = 2_000;

/** What is measured in the database, looked at when somebody asks and not before: a node that nobody measures costs nothing. */
export class LookedGauges {
  readonly #looks: readonly Look[];
  #last: Promise<readonly Gauge[]> = Promise.resolve([]);
  #at = Number.NEGATIVE_INFINITY;

  constructor(looks: readonly Look[]) {
    this.#looks = looks;
  }

  read(): Promise<readonly Gauge[]> {
    const now = performance.now();
    if (now - this.#at >= FRESH_MS) {
      this.#at = now;
      this.#last = Promise.all(this.#looks.map(inTime)).then((found) => found.flat());
    }
    return this.#last;
  }
}

/** What cannot be known now is left out: an old number would be taken for a new one. */
async function inTime(look: Look): Promise<readonly Gauge[]> {
  const found = new AbortController();
  const late = sleep(LONGEST_MS, [], { signal: found.signal, ref: false }).catch(() => []);
  try {
    return await Promise.race([look(), late]);
  } catch {
    return [];
  } finally {
    found.abort();
  }
}
