import { createInterface } from "node:readline";

/** One line of the person at the keyboard; null: nobody wants it any more, or the person has left. */
export function askOnTerminal(question: string, signal: AbortSignal): Promise<string | null> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // This reads the keys now, Ctrl-C too.
  lines.on("SIGINT", () => process.emit("SIGINT"));
  return new Promise<string | null>((resolve) => {
    lines.once("close", () => resolve(null));
    lines.question(question, { signal }, resolve);
    signal.addEventListener("abort", () => resolve(null), { once: true });
  }).finally(() => lines.close());
}
