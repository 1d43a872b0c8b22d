const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** A terminal sends Ctrl-C to the whole group, and the launcher forwards it once more: the echo is not a second wish. */
const ECHO_MS = 500;
const KILLED_BY_SIGNAL = 130;

/** Resolves at the first signal to stop; a second one ends the process at once, which loses nothing that was acknowledged. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: number | undefined;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (first !== undefined && performance.now() - first > ECHO_MS) process.exit(KILLED_BY_SIGNAL);
        first ??= performance.now();
        resolve(signal);
      });
    }
  });
}
