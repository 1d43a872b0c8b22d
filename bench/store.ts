import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import type { Section } from "./report.ts";
import { queue } from "./store/queue.ts";
import { reads } from "./store/reads.ts";
import { wake } from "./store/wake.ts";
import { writes } from "./store/writes.ts";

export function run(options: BenchOptions): Promise<Section[]> {
  return runParts("store", { writes, queue, wake, reads }, options);
}
