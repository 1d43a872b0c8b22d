import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const SDKS = ["@modelcontextprotocol/", "@a2a-js/"];
const STATIC = /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']/gm;

/** Everything a file brings with it when it is loaded, packages included. */
function loadedWith(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, target = ""] of readFileSync(file, "utf8").matchAll(STATIC)) {
    const path = join(dirname(file), target);
    if (target.startsWith(".") && existsSync(path)) loadedWith(path, seen);
    else seen.add(target);
  }
  return seen;
}

test.each(["daemon.ts", "../cli/main.ts", "../cli/guard.ts"])(
  "%s does not pay for the SDKs of protocols until somebody asks for them",
  (file) => {
    const loaded = [...loadedWith(join(import.meta.dirname, file))];
    expect(loaded.length).toBeGreaterThan(5);
    expect(loaded.filter((name) => SDKS.some((sdk) => name.startsWith(sdk)))).toEqual([]);
  },
);
