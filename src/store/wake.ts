/** `taken`: work was removed while it ran; `accounts`: one of a platform is free; `config`: there is a newer one. */
export const WAKE_TOPICS = ["ledger", "work", "claims", "mail", "taken", "accounts", "config"] as const;
export type WakeTopic = (typeof WAKE_TOPICS)[number];

/** How far a hint goes. */
export type Reach = "here" | "everywhere";

/**
 * Hints that something may be there to read. A hint is never the truth, only a reason to look sooner than the next poll.
 * Versions close the gap between looking and waiting: take the version, look, then wait from that version.
 */
export class Wake {
  readonly #versions = new Map<WakeTopic, number>();
  readonly #waiters = new Map<WakeTopic, Set<() => void>>();
  /** Is told each time that somebody begins to wait. */
  onWait: (topic: WakeTopic) => void = () => {};

  version(topic: WakeTopic): number {
    return this.#versions.get(topic) ?? 0;
  }

  hint(topic: WakeTopic): void {
    this.#versions.set(topic, this.version(topic) + 1);
    const waiters = this.#waiters.get(topic);
    if (!waiters) return;
    this.#waiters.delete(topic);
    for (const wakeUp of waiters) wakeUp();
  }

  /** Resolves at the next hint after `seen`, after `ms`, or when the signal aborts; never rejects. */
  wait(topic: WakeTopic, seen: number, ms: number, signal?: AbortSignal): Promise<void> {
    if (this.version(topic) !== seen || signal?.aborted) return Promise.resolve();
    this.onWait(topic);
    return new Promise((resolve) => {
      const waiters = this.#waiters.get(topic) ?? new Set();
      this.#waiters.set(topic, waiters);
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
      waiters.add(done);
    });
  }
}
