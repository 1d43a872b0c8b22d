/**
 * Lets so many through at a time, in the order they came. Without it everybody would hold a first handle and wait in vain for the
 * second when the process may have no more, and every reader would have its buffer at once.
 */
export class Turnstile {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(atATime: number) {
    this.#free = atATime;
  }

  async pass<Result>(body: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await body();
    } finally {
      // A place is handed on, so that nobody who comes now is let in before those who wait.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
