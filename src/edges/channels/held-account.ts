import type { Clock } from "../../kernel/clock.ts";
import { type AccountName, accountLease } from "../../records/channels/channel-accounts.ts";
import type { Store } from "../../store/store.ts";

/** Of the time of a lease: how long a node goes on without having heard that it is still the holder. */
const SILENT = 2 / 3;
/** For the way to the platform, and for what it takes it to end a request. */
const MARGIN_MS = 1_000;
const SECOND_MS = 1_000;

export interface HeldParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly leaseMs: number;
}

/**
 * How long a request may wait at a platform, in whole seconds: what a holder has asked last before it fell silent is over when its lease is,
 * or as soon after it as can be.
 */
export function longestWaitMs(leaseMs: number): number {
  return Math.max(SECOND_MS, Math.floor((leaseMs * (1 - SILENT) - MARGIN_MS) / SECOND_MS) * SECOND_MS);
}

/** One goes on while the process is stopped, the other while the machine is. */
interface Moment {
  readonly running: number;
  readonly wall: number;
}

export function momentOf(clock: Clock): Moment {
  return { running: performance.now(), wall: clock.now() };
}

/**
 * An account that is ours, as long as we hear so.
 *
 *   held → confirmed* → given back | lost (silent for too long, or somebody else's)
 */
export class HeldAccount {
  readonly name: AccountName;
  readonly fence: number;
  readonly #parts: HeldParts;
  /** When it was ours for certain: the last holder's lease had run out by then. */
  readonly #since = performance.now();
  readonly #isClean: boolean;
  readonly #over: () => void;
  readonly #lost = new AbortController();
  #confirmed: Moment;
  #silence: NodeJS.Timeout | undefined;
  /** It was given back: nothing is begun any more, whatever the database answers to a question of before. */
  #isEnded = false;

  /** `asked`: before the database was asked for it; `over`: it need not be renewed any more. */
  constructor(
    parts: HeldParts,
    name: AccountName,
    lease: { readonly fence: number; readonly isClean: boolean },
    asked: Moment,
    over: () => void,
  ) {
    this.#parts = parts;
    this.name = name;
    this.fence = lease.fence;
    this.#isClean = lease.isClean;
    this.#confirmed = asked;
    this.#over = over;
    this.confirm(asked);
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Asked before anything is begun at the platform: whoever was stopped goes on with what has arrived meanwhile before any timer tells him how late
   * it is. When the answer is no, the signal has aborted, or it was given back.
   */
  stillOurs(): boolean {
    if (this.#elapsed(this.#confirmed) >= this.#parts.leaseMs * SILENT) this.lose();
    return !this.#isEnded && !this.#lost.signal.aborted;
  }

  /** `asked`: before the database was asked. What counts is how old the lease is at most, however late the answer comes. */
  confirm(asked: Moment): void {
    if (this.#isEnded || this.#lost.signal.aborted || asked.running < this.#confirmed.running) return;
    this.#confirmed = asked;
    clearTimeout(this.#silence);
    const ms = this.#parts.leaseMs * SILENT - this.#elapsed(asked);
    this.#silence = setTimeout(() => this.lose(), Math.max(0, ms));
  }

  /** The lease runs out by itself: whatever was begun at the platform may not have heard that it is over, and who comes next must wait for it. */
  lose(): void {
    if (this.#lost.signal.aborted) return;
    clearTimeout(this.#silence);
    this.#over();
    this.#lost.abort();
  }

  /** How long to wait until nothing of the last holder goes on, where it can go on for `lingersMs`. */
  waitMs(lingersMs: number): number {
    if (this.#isClean || lingersMs === 0) return 0;
    const { leaseMs } = this.#parts;
    const ms = Math.max(MARGIN_MS, lingersMs + MARGIN_MS - leaseMs * (1 - SILENT));
    return Math.max(0, ms - (performance.now() - this.#since));
  }

  /** `isOver`: nothing of ours goes on at the platform. */
  async end(isOver: boolean): Promise<void> {
    if (this.#lost.signal.aborted) return;
    this.#isEnded = true;
    clearTimeout(this.#silence);
    this.#over();
    const { leases } = this.#parts.store;
    if (isOver) await leases.release(accountLease(this.name), this.fence, "accounts");
    else await leases.abandon(accountLease(this.name), this.fence);
  }

  #elapsed({ running, wall }: Moment): number {
    return Math.max(performance.now() - running, this.#parts.clock.now() - wall);
  }
}
