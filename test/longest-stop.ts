import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/** How long the work took, and for how long of it, at the worst, nobody else was served. */
export async function longestStop(work: () => Promise<unknown>): Promise<{ readonly tookMs: number; readonly stopMs: number }> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  const began = performance.now();
  delay.enable();
  await work();
  const tookMs = performance.now() - began;
  // A stop is known when it is over.
  await sleep(50);
  delay.disable();
  return { tookMs, stopMs: delay.max / 1e6 };
}
