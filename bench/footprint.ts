import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { residentBytes } from "./coordination/memory.ts";
import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import type { Section } from "./report.ts";
import { spread } from "./spread.ts";

const CHECKOUT = new URL("..", import.meta.url).pathname;
const IDLE_MS = 5_000;
const MIB = 1_024 * 1_024;
const GOALS = { 1: { ms: 500, mib: 100 }, 50: { ms: 500, mib: 150 }, 1000: { ms: 1_000, mib: 150 } } as const;
type Size = keyof typeof GOALS;

/** From the start of the process to the first `GET /readyz` that answers 200, and the memory of the process that listens, after idling. */
export function run(options: BenchOptions): Promise<Section[]> {
  const sizes = Object.keys(GOALS).map(Number) as Size[];
  return runParts("footprint", Object.fromEntries(sizes.map((size) => [String(size), part(size)])), options);
}

function part(size: Size) {
  return async ({ rounds, progress }: BenchOptions, folder: string): Promise<Section> => {
    const launcher = installed(folder);
    const home = join(folder, String(size));
    mkdirSync(home);
    writeFileSync(join(home, "guildhall.yaml"), configOf(size));
    // The first start makes the database and the compile cache: what everybody waits for once is told apart.
    const first = await measure(launcher, home, 0);
    const measured: Started[] = [];
    for (let round = 0; round < rounds; round++) {
      measured.push(await measure(launcher, home, IDLE_MS));
      progress(`footprint ${size}: ${JSON.stringify(measured.at(-1))}`);
    }
    const { ms, mib } = GOALS[size];
    return {
      title: `footprint: ${size} agents, ${size} bindings, on SQLite`,
      notes: [
        "the package as it is published, from the start of the process to GET /readyz = 200; memory of the listening process after 5 idle seconds",
      ],
      figures: [
        { name: "the very first start", unit: "ms", value: spread([first.readyMs]) },
        { name: "ready", unit: "ms", value: spread(measured.map(({ readyMs }) => readyMs)), goal: { atMost: ms } },
        { name: "resident", unit: "MiB", value: spread(measured.map(({ mib }) => mib)), goal: { atMost: mib } },
      ],
    };
  };
}

/** The files that `npm pack` takes, beside what they depend on. Answers their launcher. */
function installed(folder: string): string {
  const place = join(folder, "package");
  if (!existsSync(place)) {
    execFileSync(process.execPath, [join(CHECKOUT, "tools/build.mjs"), join(place, "dist")], { stdio: "inherit" });
    for (const file of ["bin", "package.json"]) cpSync(join(CHECKOUT, file), join(place, file), { recursive: true });
    symlinkSync(join(CHECKOUT, "node_modules"), join(place, "node_modules"));
  }
  return join(place, "bin/guildhall.js");
}

interface Started {
  readonly readyMs: number;
  readonly mib: number;
}

async function measure(launcher: string, home: string, idleMs: number): Promise<Started> {
  const begun = performance.now();
  const child = spawn(process.execPath, [launcher, "start", "--home", home, "--port", "0"], { stdio: ["ignore", "ignore", "inherit"] });
  try {
    const pid = await ready(child, join(home, "daemon.json"));
    const readyMs = performance.now() - begun;
    await sleep(idleMs);
    return { readyMs, mib: residentBytes(pid) / MIB };
  } finally {
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await gone;
  }
}

/** Answers the process that listens. A daemon that stopped has taken its file away. */
async function ready(child: ChildProcess, file: string): Promise<number> {
  for (; child.exitCode === null; await sleep(2)) {
    if (!existsSync(file)) continue;
    const { url, pid } = JSON.parse(readFileSync(file, "utf8")) as { url: string; pid: number };
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    if (answer?.status === 200) return pid;
  }
  throw new Error("the daemon ended");
}

/** Agents that differ, each with a chat of its own. */
function configOf(size: number): string {
  const lines = ["model: offline/demo", "personality: You are helpful and brief.", "agents:"];
  for (let index = 0; index < size; index++) {
    lines.push(`  agent-${index}:`);
    if (index === 0) lines.push("    default: true");
    lines.push(`    personality: You are number ${index}, and you keep to your own affairs.`, `    roles: [role-${index % 10}]`);
    lines.push(`    tools: ${["coding", "messaging", "full", "{ profile: minimal, also_allow: [web_fetch] }"][index % 4]}`);
  }
  lines.push("bindings:");
  for (let index = 0; index < size; index++) lines.push(`  - { agent: agent-${index}, telegram: "-100${index}" }`);
  return `${lines.join("\n")}\n`;
}
