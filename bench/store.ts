import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchOptions } from "./main.ts";
import type { Section } from "./report.ts";
import { queue } from "./store/queue.ts";
import { reads } from "./store/reads.ts";
import { wake } from "./store/wake.ts";
import { writes } from "./store/writes.ts";

const PARTS: Readonly<Record<string, (options: BenchOptions, folder: string) => Promise<Section>>> = { writes, queue, wake, reads };

export async function run(options: BenchOptions): Promise<Section[]> {
  const unknown = options.parts.filter((part) => !PARTS[part]);
  if (unknown.length > 0) throw new Error(`the store has no part ${unknown.join(", ")}; it has ${Object.keys(PARTS).join(", ")}`);
  const folder = mkdtempSync(join(tmpdir(), "guildhall-bench-"));
  const sections: Section[] = [];
  try {
    for (const [name, part] of Object.entries(PARTS))
      if (options.parts.length === 0 || options.parts.includes(name)) sections.push(await part(options, folder));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return sections;
}
