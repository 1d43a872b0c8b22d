import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import { reads } from "./pools/reads.ts";
import { watch } from "./pools/watch.ts";
import { writes } from "./pools/writes.ts";
import type { Section } from "./report.ts";

export function run(options: BenchOptions): Promise<Section[]> {
  return runParts("pools", { writes, reads, watch }, options);
}
