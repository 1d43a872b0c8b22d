import { asFailure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import { type AccountName, accountLease } from "../../records/channels/channel-accounts.ts";
import { timesLeft } from "../../store/leases.ts";
import { HeldAccount, type HeldParts, momentOf } from "./held-account.ts";

interface LeaseParts extends HeldParts {
  readonly node: string;
  readonly log: Log;
}

/** How late it is seen that an account is free when no hint comes, unless it is known when it will be. */
const ASK_AGAIN_MS = 3_000;
/** After the time at which an account should be free, by the clock of the database. */
const AFTER_MS = 20;
const RENEWALS = 4;

interface Waiting {
  readonly name: AccountName;
  readonly take: (held: HeldAccount) => void;
}

/**
 * Which accounts this node holds, and which it waits for. All that it waits for are asked about in one read, all that it holds are renewed
 * in one statement: a node with many accounts asks the database no more often than one with a single account.
 */
export class AccountLeases {
  readonly #parts: LeaseParts;
  readonly #waiting = new Set<Waiting>();
  readonly #held = new Set<HeldAccount>();
  /** Those that the database was asked about one by one, and has not answered yet. */
  readonly #alone = new Set<HeldAccount>();
  /** Aborts when something else is waited for than was asked about. */
  #news = new AbortController();
  #asking: Promise<void> | undefined;
  #renewing: NodeJS.Timeout | undefined;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  /** Until it is ours; undefined when the signal aborts before. */
  async wait(name: AccountName, signal: AbortSignal): Promise<HeldAccount | undefined> {
    if (signal.aborted) return undefined;
    const { promise, resolve } = Promise.withResolvers<HeldAccount | undefined>();
    const waiting: Waiting = { name, take: resolve };
    const leave = (): void => {
      if (!this.#waiting.delete(waiting)) return;
      this.#news.abort();
      resolve(undefined);
    };
    signal.addEventListener("abort", leave, { once: true });
    this.#waiting.add(waiting);
    this.#news.abort();
    this.#asking ??= this.#ask();
    const held = await promise;
    signal.removeEventListener("abort", leave);
    return held;
  }

  /** When nothing is waited for any more: what was being asked is answered. */
  async settled(): Promise<void> {
    await this.#asking;
  }

  async #ask(): Promise<void> {
    const { store, log } = this.#parts;
    while (this.#waiting.size > 0) {
      this.#news = new AbortController();
      const seen = store.wake.version("accounts");
      let ms = ASK_AGAIN_MS;
      try {
        const all = [...this.#waiting];
        const left = await timesLeft(
          store.read,
          all.map(({ name }) => accountLease(name)),
        );
        await Promise.all(all.filter(({ name }) => left(accountLease(name)) === 0).map((waiting) => this.#acquire(waiting)));
        for (const { name } of this.#waiting) ms = Math.min(ms, (left(accountLease(name)) || ASK_AGAIN_MS) + AFTER_MS);
      } catch (error) {
        const { code, message } = asFailure(error);
        log.warn("no account can be held; trying again", { code, error: message });
      }
      if (this.#waiting.size > 0) await store.wake.wait("accounts", seen, ms, this.#news.signal);
    }
    // At once: whoever begins to wait from here on finds nobody who asks.
    this.#asking = undefined;
  }

  async #acquire(waiting: Waiting): Promise<void> {
    const { store, node, leaseMs, clock } = this.#parts;
    const asked = momentOf(clock);
    const lease = await store.leases.acquire(accountLease(waiting.name), node, leaseMs);
    if (!lease.held) return;
    const held: HeldAccount = new HeldAccount(this.#parts, waiting.name, lease, asked, () => this.#forget(held));
    if (this.#waiting.delete(waiting)) {
      this.#held.add(held);
      this.#renewing ??= setInterval(() => void this.#renew(), leaseMs / RENEWALS);
      waiting.take(held);
    }
    // Meanwhile nobody wants it any more.
    else await held.end(true);
  }

  #forget(gone: HeldAccount): void {
    this.#held.delete(gone);
    if (this.#held.size > 0) return;
    clearInterval(this.#renewing);
    this.#renewing = undefined;
  }

  async #renew(): Promise<void> {
    const { store, leaseMs, log, clock } = this.#parts;
    const asked = momentOf(clock);
    const held = [...this.#held];
    try {
      const renewed = await store.leases.renewAll(
        held.map(({ name, fence }) => ({ name: accountLease(name), fence })),
        leaseMs,
      );
      const [ours, others] = [held.filter(({ fence }) => renewed.has(fence)), held.filter(({ fence }) => !renewed.has(fence))];
      for (const account of ours) account.confirm(asked);
      await Promise.all(others.map((account) => this.#renewAlone(account)));
    } catch (error) {
      log.warn("the leases of accounts could not be renewed", { error: asFailure(error).message });
    }
  }

  /** It is lost, or in use by a transaction that takes its time: then it keeps the others from nothing. */
  async #renewAlone(account: HeldAccount): Promise<void> {
    const { store, leaseMs, clock } = this.#parts;
    if (this.#alone.has(account) || !this.#held.has(account)) return;
    this.#alone.add(account);
    const asked = momentOf(clock);
    try {
      if ((await store.leases.renew(accountLease(account.name), account.fence, leaseMs)) === null) account.lose();
      else account.confirm(asked);
    } finally {
      this.#alone.delete(account);
    }
  }
}
