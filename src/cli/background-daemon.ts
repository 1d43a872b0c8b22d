import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "../client/api-client.ts";
import { ClientError } from "../client/client-error.ts";
import { findRunning } from "./connect.ts";
import type { GlobalOptions } from "./terminal.ts";

const START_MS = 30_000;
const LOOK_AGAIN_MS = 100;
const LONGEST_LOG = 5 * 1024 * 1024;

/** The home's daemon, started in the background where none runs. Of several who start one at once, one wins and all find it. */
export async function reachDaemon(options: GlobalOptions, patienceMs = 0): Promise<ApiClient> {
  const patient = performance.now() + patienceMs;
  do {
    const running = await findRunning(options);
    if (running) return running;
    if (performance.now() < patient) await sleep(LOOK_AGAIN_MS);
  } while (performance.now() < patient);
  return startInBackground(options);
}

async function startInBackground(options: GlobalOptions): Promise<ApiClient> {
  const { homePath } = await import("../daemon/find-daemon.ts");
  const home = homePath(options);
  const log = join(home, "daemon.log");
  mkdirSync(home, { recursive: true, mode: 0o700 });
  let attempt = startOne(options, home, log, []);
  for (const deadline = performance.now() + START_MS; performance.now() < deadline; await sleep(LOOK_AGAIN_MS)) {
    const running = await findRunning(options);
    if (running) return running;
    const problem = attempt.problem();
    if (problem === undefined || problem.includes("[daemon.already_running]")) continue;
    if (attempt.extra.length > 0 || !problem.includes("[daemon.port_taken]")) throw notStarted(log, problem);
    // The usual port is somebody else's. Whoever looks for this daemon finds it by its file.
    attempt = startOne(options, home, log, ["--port", "0"]);
  }
  throw notStarted(log, "it did not answer in time");
}

function startOne(options: GlobalOptions, home: string, log: string, extra: readonly string[]) {
  if (sizeOf(log) > LONGEST_LOG) renameSync(log, `${log}.old`);
  const from = sizeOf(log);
  const output = openSync(log, "a", 0o600);
  const config = options.config === undefined ? [] : ["--config", resolve(options.config)];
  const args = [process.argv[1] as string, "start", "--home", home, ...config, ...extra];
  // In the home, so that it holds on to no folder of somebody else's.
  const child = spawn(process.execPath, args, { cwd: home, detached: true, stdio: ["ignore", output, output] });
  closeSync(output);
  let failure: string | undefined;
  child.on("error", (error) => {
    failure = error.message;
  });
  child.on("exit", (code) => {
    if (code !== 0) failure = readFileSync(log, "utf8").slice(from);
  });
  child.unref();
  return { extra, problem: () => failure };
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function notStarted(log: string, problem: string): ClientError {
  const said = problem.split("\n").findLast((line) => line.startsWith("guildhall:")) ?? problem.trim().split("\n").at(-1) ?? "";
  return new ClientError("daemon.not_running", `the daemon could not be started: ${said.replace(/^guildhall: /, "")}`, {
    hint: `See ${log}, or run \`guildhall start\`.`,
  });
}
