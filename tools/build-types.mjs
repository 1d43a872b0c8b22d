// The types that a program sees which imports us: those of src/library and whatever they name, and nothing else of the house.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = dirname(dirname(fileURLToPath(import.meta.url)));
const RELATIVE = /(from |import\()(["'])(\.[^"']*)\.ts\2/g;
const BARE = /(?:from |import\()["']([^."'][^"']*)["']/g;
/** What whoever installs us has as well. */
const NAMED = ["zod"];

export function buildTypes(target) {
  const all = mkdtempSync(join(tmpdir(), "guildhall-types-"));
  try {
    const compiler = join(PACKAGE, "node_modules/typescript/bin/tsc");
    execFileSync(process.execPath, [compiler, "-p", join(PACKAGE, "tools/tsconfig.types.json"), "--outDir", all], { stdio: "inherit" });
    const seen = new Set();
    const open = ["library/index"];
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      if (seen.has(name)) continue;
      seen.add(name);
      const text = readFileSync(join(all, `${name}.d.ts`), "utf8");
      for (const [, bare] of text.matchAll(BARE))
        if (!NAMED.includes(bare)) throw new Error(`the types of src/${name}.ts name ${bare}, which programs need not have`);
      for (const [, , , path] of text.matchAll(RELATIVE)) open.push(normalize(join(dirname(name), path)));
      const file = join(target, `${name}.d.ts`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text.replace(RELATIVE, "$1$2$3.js$2"));
    }
  } finally {
    rmSync(all, { recursive: true, force: true });
  }
}
