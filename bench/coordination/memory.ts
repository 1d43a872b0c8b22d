import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const EVERY_MS = 250;
const MIB = 1_024 * 1_024;

export interface Sample {
  readonly at: number;
  readonly bytes: number;
}

/** The resident memory of another process, sampled until it is told to stop. */
export function sampleMemory(pid: number): { stop(): readonly Sample[] } {
  const samples: Sample[] = [];
  const timer = setInterval(() => samples.push({ at: Date.now(), bytes: residentBytes(pid) }), EVERY_MS);
  return {
    stop: () => {
      clearInterval(timer);
      return samples;
    },
  };
}

export function residentBytes(pid: number): number {
  if (process.platform !== "linux") return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) * 1_024;
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1_024;
}

/** The median between two moments, in MiB. */
export function between(samples: readonly Sample[], from: number, to: number): number {
  const inside = samples.filter(({ at }) => at >= from && at <= to).map(({ bytes }) => bytes / MIB);
  if (inside.length === 0) throw new Error("no sample of memory in between");
  inside.sort((a, b) => a - b);
  return inside[Math.floor(inside.length / 2)] as number;
}
