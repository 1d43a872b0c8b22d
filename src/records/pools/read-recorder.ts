import type { Caller } from "../../kernel/caller.ts";
import type { Store } from "../../store/store.ts";
import { isRecorded, type ReadLog, recordReads, type SeenVersion } from "./read-log.ts";

const REMEMBERED = 50_000;
const REFRESH_MS = 60_000;

/**
 * Records reads before their answer is given: in the run's log where there is one, else at once. A repeat needs no write, except
 * that the time of the last one is renewed at most once a minute. What is remembered here only saves writes.
 */
export class ReadRecorder {
  readonly #store: Store;
  /** By version and reader: the database's time when it was last recorded. Oldest first. */
  readonly #recent = new Map<string, number>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Whether nothing need be written for this read. */
  isKnown(caller: Caller, seen: SeenVersion, now: number, log?: ReadLog): boolean {
    return !isRecorded(caller) || (log === undefined && this.#isRecent(nameOf(caller, seen), now));
  }

  async record(caller: Caller, seen: readonly SeenVersion[], now: number, log?: ReadLog): Promise<void> {
    if (!isRecorded(caller) || seen.length === 0) return;
    if (log) {
      for (const one of seen) log.note(one);
      return;
    }
    const fresh = seen.filter((one) => !this.#isRecent(nameOf(caller, one), now));
    if (fresh.length === 0) return;
    await this.#store.transact("record reads", (tx) => recordReads(tx, caller, fresh), "locked");
    for (const one of fresh) this.#remember(nameOf(caller, one), now);
  }

  #isRecent(name: string, now: number): boolean {
    const at = this.#recent.get(name);
    return at !== undefined && now - at < REFRESH_MS && now >= at;
  }

  #remember(name: string, now: number): void {
    this.#recent.delete(name);
    this.#recent.set(name, now);
    if (this.#recent.size > REMEMBERED) this.#recent.delete(this.#recent.keys().next().value as string);
  }
}

/** The parts cannot contain NUL: the store refuses it. */
function nameOf(caller: Caller, { pool, key, version, shown }: SeenVersion): string {
  return `${pool}\0${key}\0${version}\0${caller.name}\0${caller.run ?? ""}\0${shown ? 1 : 0}`;
}
