import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BUGS, type PlantedBug } from "./bugs.ts";

/**
 * Plants each bug in a copy of the source, runs the tests as they are, and shows which of them noticed.
 * `npm run planted`, or `npm run planted -- WORD` for the bugs whose name contains it.
 */
const root = new URL("../..", import.meta.url).pathname;
const COPIED = ["bin", "docs", "src", "test", "tools", "package.json", "tsconfig.json", "vitest.config.ts"];

interface Result {
  readonly caught: boolean;
  readonly by: string;
  readonly seconds: number;
}

function copySource(): string {
  const copy = mkdtempSync(join(tmpdir(), "guildhall-planted-"));
  for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

function plant(copy: string, bug: PlantedBug): void {
  const path = join(copy, bug.file);
  const text = readFileSync(path, "utf8");
  if (text.split(bug.from).length !== 2)
    throw new Error(`"${bug.name}" no longer fits ${bug.file}: its text must occur there exactly once`);
  writeFileSync(
    path,
    text.replace(bug.from, () => bug.to),
  );
}

function runTests(
  copy: string,
  tests: readonly string[],
  filter?: string,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = [vitest, "run", ...tests, "--bail", "1", "--reporter", "verbose", ...(filter ? ["-t", filter] : [])];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: copy, env: { ...process.env, NO_COLOR: "1" }, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (data) => {
      output += data;
    });
    child.stderr.on("data", (data) => {
      output += data;
    });
    child.on("close", (code) => resolve({ code, output }));
  });
}

async function tryOut(bug: PlantedBug): Promise<Result> {
  const copy = copySource();
  plant(copy, bug);
  const started = performance.now();
  try {
    const { code, output } = await runTests(copy, bug.tests, bug.filter);
    const failed = output.match(/^ *[×✗].* > (.+?)(?: \d+ms)?$/m)?.[1];
    return { caught: code !== 0 && failed !== undefined, by: failed ?? output.slice(-500), seconds: (performance.now() - started) / 1000 };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

const word = process.argv[2] ?? "";
const chosen = BUGS.filter((bug) => bug.name.includes(word));

// A test that fails anyway notices nothing: without a bug all of them must pass.
const control = copySource();
const unspoiled = await runTests(control, [...new Set(chosen.flatMap((bug) => bug.tests))]);
rmSync(control, { recursive: true, force: true });
if (unspoiled.code !== 0) throw new Error(`the tests fail without any bug:\n${unspoiled.output.slice(-3_000)}`);
console.log("ok     the unspoiled source passes the same tests");

let missed = 0;
for (const bug of chosen) {
  const { caught, by, seconds } = await tryOut(bug);
  if (!caught) missed++;
  console.log(
    `${caught ? "caught" : "MISSED"}  ${seconds.toFixed(0).padStart(3)} s  ${bug.name}\n               ${caught ? "by" : "output:"} ${by}`,
  );
}
console.log(`\n${chosen.length - missed} of ${chosen.length} planted bugs caught`);
process.exitCode = missed === 0 ? 0 : 1;
