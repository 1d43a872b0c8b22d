/** A signal that aborts with the first of several, or when its time is up. */
export interface FirstOf {
  readonly signal: AbortSignal;
  readonly isTimeUp: boolean;
  /** Lets go of everything. */
  over(): void;
}

/**
 * What `AbortSignal.any` and `AbortSignal.timeout` do, for something that ends: those hold each other by weak references, which a quick
 * collection of garbage follows like any other, so that everything a turn has made outlives it.
 */
export function firstOf(signals: readonly AbortSignal[], ms: number): FirstOf {
  const first = new AbortController();
  let isTimeUp = false;
  const listening = signals.map((signal) => {
    const abort = (): void => first.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    return () => signal.removeEventListener("abort", abort);
  });
  const timer = setTimeout(() => {
    isTimeUp = !first.signal.aborted;
    first.abort(new DOMException("The time is up.", "TimeoutError"));
  }, ms);
  timer.unref();
  return {
    signal: first.signal,
    get isTimeUp() {
      return isTimeUp;
    },
    over: () => {
      clearTimeout(timer);
      for (const stop of listening) stop();
    },
  };
}
