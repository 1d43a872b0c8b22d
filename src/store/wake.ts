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
  /** In lists: of maps and sets, see `Roster`. */
  readonly #waiters = new Map<WakeTopic, (() => void)[]>(WAKE_TOPICS.map((topic) => [topic, []]));
  /** Is told each time that somebody begins to wait. */
  onWait: (topic: WakeTopic) => void = () => {};

  version(topic: WakeTopic): number {
    return this.#versions.get(topic) ?? 0;
  }

  hint(topic: WakeTopic): void {
    this.#versions.set(topic, this.version(topic) + 1);
    const waiters = this.#waiters.get(topic);
    // A newer program on the same database may hint at what this one does not know.
    if (!waiters?.length) return;
    this.#waiters.set(topic, []);
    for (const wakeUp of waiters) wakeUp();
  }

  /** Resolves at the next hint after `seen`, after `ms`, or when the signal aborts; never rejects. */
  wait(topic: WakeTopic, seen: number, ms: number, signal?: AbortSignal): Promise<void> {
    if (this.version(topic) !== seen || signal?.aborted) return Promise.resolve();
    this.onWait(topic);
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        const waiters = this.#waiters.get(topic);
        const place = waiters?.indexOf(done) ?? -1;
        if (place >= 0) waiters?.splice(place, 1);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
      this.#waiters.get(topic)?.push(done);
    });
  }
}
