// Builds dist/ for publishing: few large files instead of hundreds of small ones, which start in two thirds of the time and memory.
// A checkout runs its source directly and needs no build.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { buildTypes } from "./build-types.mjs";

const PACKAGE = dirname(dirname(fileURLToPath(import.meta.url)));
const [folder, only] = process.argv.slice(2);
const dist = resolve(folder ?? join(PACKAGE, "dist"));
// Not inside: `pg` looks for an optional native part of itself when it is loaded; `zlib-sync` is one that Discord's client can do without.
const external = [/^node:/, "pg", "zlib-sync"];

rmSync(dist, { recursive: true, force: true });
const bundle = await rolldown({
  cwd: PACKAGE,
  // Everything lies in one folder: what the source refers to by its place (the workers, package.json) has the same place here.
  input: {
    main: "src/cli/main.ts",
    index: "src/library/index.ts",
    "parse-aside-worker": "src/settings/parse-aside-worker.ts",
    "read-page-worker": "src/abilities/tools/web/read-page-worker.ts",
    "search-worker": "src/abilities/tools/files/search-worker.ts",
    "forward-worker": "src/records/workspaces/sandbox/forward-worker.ts",
    "checkpoint-worker": "src/store/sqlite/checkpoint-worker.ts",
    "count-tokens-worker": "src/turns/count-tokens-worker.ts",
  },
  platform: "node",
  external,
});
const { output } = await bundle.write({
  dir: join(dist, "app"),
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "[name]-[hash].js",
});
await bundle.close();

if (only !== "--no-types") buildTypes(join(dist, "types"));

const inside = new Map();
for (const chunk of output) for (const module of chunk.moduleIds ?? []) addPackageOf(module);
mkdirSync(dist, { recursive: true });
writeFileSync(join(dist, "licenses.txt"), [...inside.values()].sort().join("\n"));

/** What is copied into the program keeps its licence beside it. */
function addPackageOf(module) {
  const folder = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(module)?.[0];
  if (!folder || inside.has(folder) || !existsSync(join(folder, "package.json"))) return;
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file && !license) throw new Error(`${name} has no licence`);
  inside.set(folder, `## ${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8") : ""}\n`);
}
