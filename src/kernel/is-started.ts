import type { ChildProcess } from "node:child_process";

/**
 * Whether a child that was just made runs. Where no descriptor or process is left, Node gives back one without streams: its error comes a
 * moment later and ends whoever does not listen, and its `kill` goes to every process of our own group. To be asked before anything else.
 */
export function isStarted(child: Pick<ChildProcess, "pid" | "on">): boolean {
  child.on("error", () => {});
  return child.pid !== undefined;
}
