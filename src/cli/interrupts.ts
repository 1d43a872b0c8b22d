/** A terminal sends Ctrl-C to every process of a command, and the launcher passes on what it hears: the echo is not a second wish. */
const ECHO_MS = 500;
const KILLED_BY_SIGNAL = 130;

/** Calls back at the first Ctrl-C; a second one ends the process at once. It listens to the end: an echo may come as late as that. */
export function onInterrupt(first: () => void): void {
  let pressed: number | undefined;
  process.on("SIGINT", () => {
    if (pressed !== undefined && performance.now() - pressed > ECHO_MS) process.exit(KILLED_BY_SIGNAL);
    if (pressed !== undefined) return;
    pressed = performance.now();
    first();
  });
}
