import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchOptions } from "./main.ts";
import type { Section } from "./report.ts";

export type Parts = Readonly<Record<string, (options: BenchOptions, folder: string) => Promise<Section>>>;

/** The parts that were asked for, all when none was, with a folder for their files. */
export async function runParts(name: string, parts: Parts, options: BenchOptions): Promise<Section[]> {
  const unknown = options.parts.filter((part) => !parts[part]);
  if (unknown.length > 0) throw new Error(`${name} has no part ${unknown.join(", ")}; it has ${Object.keys(parts).join(", ")}`);
  const folder = mkdtempSync(join(tmpdir(), "guildhall-bench-"));
  const sections: Section[] = [];
  try {
    for (const [part, run] of Object.entries(parts))
      if (options.parts.length === 0 || options.parts.includes(part)) sections.push(await run(options, folder));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return sections;
}
