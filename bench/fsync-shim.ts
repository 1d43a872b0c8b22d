import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The compiled fsync-shim.c: counts what a child process syncs, and slows it down on demand. */
export interface FsyncShim {
  /** What the child's environment needs. Its counters start at zero. */
  environment(delayMs: number): Record<string, string>;
  /** The same, and nothing is synced at all. */
  withoutSync(): Record<string, string>;
}

/** Answers why there is none, where there is none: no compiler, or no LD_PRELOAD. */
export function buildFsyncShim(folder: string): FsyncShim | string {
  if (process.platform !== "linux") return `LD_PRELOAD is not known on ${process.platform}`;
  const library = join(folder, "fsync-shim.so");
  try {
    execFileSync("cc", ["-O2", "-shared", "-fPIC", "-o", library, join(import.meta.dirname, "fsync-shim.c"), "-ldl"], {
      stdio: ["ignore", "ignore", "pipe"],
    });
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    return missing ? "there is no C compiler (cc)" : `cc failed: ${(error as Error).message}`;
  }
  let files = 0;
  const environment = (delayMs: number): Record<string, string> => {
    const counters = join(folder, `fsyncs-${files++}`);
    writeFileSync(counters, Buffer.alloc(16));
    return { LD_PRELOAD: library, FSYNC_SHIM_FILE: counters, FSYNC_SHIM_DELAY_US: String(delayMs * 1_000) };
  };
  return { environment, withoutSync: () => ({ ...environment(0), FSYNC_SHIM_SKIP: "1" }) };
}

/** In the child: how often this process has synced a file so far; null without the shim. */
export function countFsyncs(): number | null {
  const file = process.env.FSYNC_SHIM_FILE;
  if (!file) return null;
  const counters = readFileSync(file);
  return Number(counters.readBigUInt64LE(0) + counters.readBigUInt64LE(8));
}
