// The quick check before every commit: format and lint, types, unused code, then the tests that need no server.
// Steps that do not wait for one another run side by side; all problems are shown, not only the first.
import { spawn } from "node:child_process";

const steps = [
  ["format and lint", "biome", ["check", "--error-on-warnings", "."]],
  ["types", "tsc", ["-p", "."]],
  ["unused code", "knip", ["--no-progress"]],
  ["unit tests", "vitest", ["run", "--project", "unit"]],
];

function run([name, program, args]) {
  const started = performance.now();
  return new Promise((resolve) => {
    let output = "";
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, FORCE_COLOR: process.stdout.isTTY ? "1" : "0" },
    });
    child.stdout.on("data", (data) => {
      output += data;
    });
    child.stderr.on("data", (data) => {
      output += data;
    });
    child.on("error", (error) => resolve({ name, ok: false, output: error.message, ms: 0 }));
    child.on("close", (code) => resolve({ name, ok: code === 0, output, ms: performance.now() - started }));
  });
}

const results = await Promise.all(steps.map(run));
for (const { name, ok, output, ms } of results) {
  console.log(`${ok ? "ok  " : "FAIL"}  ${name.padEnd(16)} ${(ms / 1000).toFixed(1).padStart(6)} s`);
  if (!ok || name === "unit tests") console.log(output.trimEnd());
}
process.exitCode = results.every((result) => result.ok) ? 0 : 1;
