import { setImmediate as nextTurn } from "node:timers/promises";

const SLICE_MS = 10;

/**
 * For loops that may be long: others run after each slice of time.
 *
 *   if (slice.isOver) await slice.next();
 */
export class TimeSlice {
  #since = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#since >= SLICE_MS;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.#since = performance.now();
  }
}
