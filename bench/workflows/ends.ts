import { setTimeout as sleep } from "node:timers/promises";
import { list } from "../../src/store/sql.ts";
import type { Store } from "../../src/store/store.ts";

const LOOK_MS = 2;

/** Looked at together, so that looking costs little: who waits for a run of ours sees its events. */
export class Ends {
  readonly #store: Store;
  readonly #waiting = new Map<string, () => void>();
  #looking = false;

  constructor(store: Store) {
    this.#store = store;
  }

  of(id: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.set(id, resolve);
    if (!this.#looking) void this.#look();
    return promise;
  }

  async #look(): Promise<void> {
    this.#looking = true;
    while (this.#waiting.size > 0) {
      const rows = await this.#store.read.all<{ id: string }>`select id from workflow_runs where status = 'completed'
        and id in ${list([...this.#waiting.keys()])}`;
      for (const { id } of rows) {
        this.#waiting.get(id)?.();
        this.#waiting.delete(id);
      }
      await sleep(LOOK_MS);
    }
    this.#looking = false;
  }
}
