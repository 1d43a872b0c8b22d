import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename } from "node:path";

export interface AncestorProcess {
  readonly pid: number;
  readonly parent: number;
  /** When it started: with it a process id means one process for ever. */
  readonly started: string;
  readonly args: readonly string[];
}

const FARTHEST = 32;

/** The processes above this one, the nearest first. Empty where the system does not tell. */
export function ancestors(pid = process.ppid): AncestorProcess[] {
  const known = process.platform === "linux" ? undefined : listed();
  const found: AncestorProcess[] = [];
  for (let next = pid; next > 1 && found.length < FARTHEST; ) {
    const one = known ? known.get(next) : fromProc(next);
    if (!one) break;
    found.push(one);
    next = one.parent;
  }
  return found;
}

export function nameOfProcess({ pid, started }: AncestorProcess): string {
  return `${hostname()}/${pid}/${started}`;
}

/** The agent that has started us, past the shells and package runners in between. */
export function agentAmong(nearestFirst: readonly AncestorProcess[]): AncestorProcess | undefined {
  return nearestFirst.find(({ args }) => !onlyStarts(args));
}

/** Whether a command line does nothing but start another program. */
export function onlyStarts(args: readonly string[]): boolean {
  const [program = "", first = "", second = ""] = args;
  const name = basename(program.replace(/^-/, ""));
  if (/^(sh|bash|dash|zsh|ksh|fish|busybox)$/.test(name)) return /^-\w*c$/.test(first) || (first === "sh" && /^-\w*c$/.test(second));
  // npm sets its title to the whole command.
  if (/^(npm|npx|pnpm|yarn|bunx|bun x)(\s|$)/.test(basename(program))) return true;
  if (/^(env|npx|npm|pnpm|yarn|bunx|corepack|mise|volta|guildhall)$/.test(name)) return true;
  if (!/^(node|nodejs|bun|deno)$/.test(name)) return false;
  const script = [first, second].find((arg) => !arg.startsWith("-")) ?? "";
  return /^(npx|npm|pnpm|yarn|corepack|guildhall)(-cli)?(\.[cm]?js)?$/.test(basename(script));
}

function fromProc(pid: number): AncestorProcess | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name is in parentheses, and may itself contain some.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8")
      .split("\0")
      .filter((arg) => arg !== "");
    return { pid, parent: Number(fields[1]), started: fields[19] as string, args };
  } catch {
    return undefined;
  }
}

function listed(): ReadonlyMap<number, AncestorProcess> {
  try {
    const lines = execFileSync("ps", ["-axo", "pid=,ppid=,lstart=,args="], { encoding: "utf8", timeout: 2_000 }).split("\n");
    return new Map(lines.flatMap(fromLine));
  } catch {
    return new Map();
  }
}

function fromLine(line: string): [number, AncestorProcess][] {
  const [, pid, parent, started, args] = /^\s*(\d+)\s+(\d+)\s+(\S+\s+\S+\s+\d+\s+[\d:]+\s+\d+)\s+(.*)$/.exec(line) ?? [];
  if (!pid || !parent || !started || args === undefined) return [];
  return [[Number(pid), { pid: Number(pid), parent: Number(parent), started: started.replace(/\s+/g, "_"), args: args.split(" ") }]];
}
