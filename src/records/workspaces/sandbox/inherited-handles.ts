import { readdirSync, readFileSync } from "node:fs";

const CLOSE_ON_EXEC = 0o2000000;

/** What this process would pass on to every program: open files and pipes of whoever started it. Node marks its own, these it does not. */
export function inheritedHandles(): number[] {
  try {
    return readdirSync("/proc/self/fd")
      .map(Number)
      .filter((handle) => handle > 2 && isPassedOn(handle))
      .sort((a, b) => a - b);
  } catch {
    return [];
  }
}

function isPassedOn(handle: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${handle}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    return false;
  }
}
