/** A signal that aborts with the first of several, or when its time is up. */
export interface FirstOf {
  readonly signal: AbortSignal;
  isTimeUp(): boolean;
  /** Lets go of everything. */
  over(): void;
}

/**
 * What `AbortSignal.any` and `AbortSignal.timeout` do, for something that ends: those hold each other by weak references, which a quick
 * collection of garbage follows like any other, so that everything a turn has made outlives it.
 */
export function firstOf(signals: readonly AbortSignal[], ms?: number): FirstOf {
  const first = new AbortController();
  let isTimeUp = false;
  const listening = signals.map((signal) => {
    const abort = (): void => first.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    return () => signal.removeEventListener("abort", abort);
  });
  const late = (): void => {
    isTimeUp = !first.signal.aborted;
    first.abort(new DOMException("The time is up.", "TimeoutError"));
  };
  const timer = ms === undefined ? undefined : setTimeout(late, ms).unref();
  return {
    signal: first.signal,
    // A getter in a literal would give each of these a shape of its own, which outlives it with all it has seen until all garbage is looked for.
    isTimeUp: () => isTimeUp,
    over: () => {
      clearTimeout(timer);
      for (const stop of listening) stop();
    },
  };
}
