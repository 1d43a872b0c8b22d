import type { LedgerEvent } from "../contract/events.ts";
import type { Engine } from "./engine.ts";
import type { Ledger } from "./ledger.ts";

/** Hints make it quick; this is how late an event may be when a hint was lost. */
const POLL_MS = 1_000;
const PAGE = 500;
/** Followers that are nearly caught up are served from memory: a thousand watchers cost one query, not a thousand. */
const REMEMBERED = 2_000;

/** The newest events, read once for everybody who follows. It works only while somebody does. */
export class LedgerTail {
  readonly #engine: Engine;
  readonly #ledger: Ledger;
  #followers = 0;
  #recent: LedgerEvent[] = [];
  /** Everything after this number, up to the newest remembered event, is in `#recent`. */
  #from = 0;
  #refresh: Promise<void> | undefined;

  constructor(engine: Engine, ledger: Ledger) {
    this.#engine = engine;
    this.#ledger = ledger;
  }

  /** Every event after `after`, in order, once, for as long as the signal lets it. Broken connections are waited out. */
  async *follow(after: number, signal: AbortSignal): AsyncGenerator<LedgerEvent, void, void> {
    if (this.#followers++ === 0) this.#recent = [];
    try {
      let last = after;
      while (!signal.aborted) {
        const seen = this.#engine.wake.version("ledger");
        const events = await this.#next(last);
        for (const event of events) {
          if (signal.aborted) return;
          yield event;
          last = event.seq;
        }
        if (events.length === 0) await this.#engine.wake.wait("ledger", seen, POLL_MS, signal);
      }
    } finally {
      this.#followers--;
    }
  }

  async #next(last: number): Promise<LedgerEvent[]> {
    try {
      if (this.#recent.length === 0) {
        const events = await this.#ledger.read(last, PAGE);
        if (events.length > 0 && events.length < PAGE && this.#recent.length === 0) this.#remember(last, events);
        return events;
      }
      if (last < this.#from) return await this.#ledger.read(last, PAGE);
      if (last >= (this.#recent.at(-1)?.seq ?? 0)) await this.#extend();
      let index = this.#recent.length;
      while (index > 0 && (this.#recent[index - 1] as LedgerEvent).seq > last) index--;
      return this.#recent.slice(index);
    } catch {
      // The database is away. What was not read is still there when it comes back; the caller waits for the next poll.
      return [];
    }
  }

  /** One read for all who wait: whoever comes while it runs shares it. */
  #extend(): Promise<void> {
    this.#refresh ??= (async () => {
      try {
        const newest = this.#recent.at(-1)?.seq ?? 0;
        this.#recent.push(...(await this.#ledger.read(newest, PAGE)));
        const surplus = this.#recent.length - REMEMBERED;
        if (surplus > 0) this.#from = this.#recent.splice(0, surplus).at(-1)?.seq ?? this.#from;
      } finally {
        this.#refresh = undefined;
      }
    })();
    return this.#refresh;
  }

  #remember(from: number, events: readonly LedgerEvent[]): void {
    this.#from = from;
    this.#recent = [...events];
  }
}
