import type { LedgerEvent } from "../contract/events.ts";
import type { Engine } from "./engine.ts";
import type { Ledger } from "./ledger.ts";

/** Hints make it quick; this is how late an event may be when a hint was lost. */
const POLL_MS = 1_000;
const PAGE = 500;
/**
 * Followers that are nearly caught up are served from memory: a thousand watchers cost one query, not a thousand. No more than that: what is
 * kept for longer than between two collections of young garbage is copied by both, and was most of what they copied (4 ms each).
 */
const REMEMBERED = 256;
const SURPLUS = 64;

/** The newest events, read once for everybody who follows. It works only while somebody does. */
export class LedgerTail {
  readonly #engine: Engine;
  readonly #ledger: Ledger;
  #followers = 0;
  #recent: LedgerEvent[] = [];
  /** Everything after `#from`, up to `#newest`, is in `#recent`; -1: nothing was read yet. */
  #from = 0;
  #newest = -1;
  /** The last look found all that there was, and what came since was taken. */
  #isCaughtUp = true;
  /** Something was committed here while somebody was reading. */
  #missed = false;
  #refresh: Promise<void> | undefined;

  constructor(engine: Engine, ledger: Ledger) {
    this.#engine = engine;
    this.#ledger = ledger;
  }

  /** Every event after `after`, in order, once, for as long as the signal lets it. Broken connections are waited out. */
  async *follow(after: number, signal: AbortSignal): AsyncGenerator<LedgerEvent, void, void> {
    if (this.#followers++ === 0) this.#newest = -1;
    this.#ledger.onCommitted = (event) => this.#take(event);
    try {
      let last = after;
      while (!signal.aborted) {
        const seen = this.#engine.wake.version("ledger");
        const { events, isAll } = await this.#next(last);
        for (const event of events) {
          if (signal.aborted) return;
          yield event;
          last = event.seq;
        }
        // What came meanwhile has left a hint, and is not waited for.
        if (isAll) await this.#engine.wake.wait("ledger", seen, POLL_MS, signal);
      }
    } finally {
      if (--this.#followers === 0) this.#ledger.onCommitted = undefined;
    }
  }

  /** `isAll`: there was no more when it was read. */
  async #next(last: number): Promise<{ readonly events: readonly LedgerEvent[]; readonly isAll: boolean }> {
    try {
      if (this.#newest < 0) return pageOf(await this.#begin(last));
      if (last < this.#from) return pageOf(await this.#ledger.read(last, PAGE));
      if (last >= this.#newest) await this.#extend();
      let index = this.#recent.length;
      while (index > 0 && (this.#recent[index - 1] as LedgerEvent).seq > last) index--;
      return { events: this.#recent.slice(index), isAll: this.#isCaughtUp };
    } catch {
      // The database is away. What was not read is still there when it comes back; the caller waits for the next poll.
      return { events: [], isAll: true };
    }
  }

  /** The first who is nearly caught up begins the memory; those who are far behind read for themselves until then. */
  async #begin(last: number): Promise<LedgerEvent[]> {
    const events = await this.#ledger.read(last, PAGE);
    if (this.#newest < 0 && events.length < PAGE) {
      this.#from = last;
      this.#newest = events.at(-1)?.seq ?? last;
      this.#recent = [...events];
    }
    return events;
  }

  /** One read for all who wait: whoever comes while it runs shares it. */
  #extend(): Promise<void> {
    this.#refresh ??= (async () => {
      try {
        this.#missed = false;
        const events = await this.#ledger.read(this.#newest, PAGE);
        this.#isCaughtUp = events.length < PAGE && !this.#missed;
        // Before the new ones come, which all who wait have not seen; and not one by one: each time the rest moves up.
        const surplus = this.#recent.length - REMEMBERED;
        if (surplus >= SURPLUS) this.#from = this.#recent.splice(0, surplus).at(-1)?.seq ?? this.#from;
        this.#recent.push(...events);
        this.#newest = this.#recent.at(-1)?.seq ?? this.#newest;
      } finally {
        this.#refresh = undefined;
      }
    })();
    return this.#refresh;
  }

  /** What was committed here just now needs not be read again, where it is the next one, nobody is reading it, and there is room until somebody reads. */
  #take(event: LedgerEvent): void {
    if (this.#newest < 0) return;
    if (this.#refresh || event.seq !== this.#newest + 1 || this.#recent.length >= REMEMBERED + SURPLUS) {
      this.#isCaughtUp = false;
      this.#missed = true;
      return;
    }
    this.#recent.push(event);
    this.#newest = event.seq;
  }
}

function pageOf(events: readonly LedgerEvent[]): { readonly events: readonly LedgerEvent[]; readonly isAll: boolean } {
  return { events, isAll: events.length < PAGE };
}
