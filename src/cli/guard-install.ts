import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ClientError } from "../client/client-error.ts";
import { type GlobalOptions, print } from "./terminal.ts";

export interface InstallOptions extends GlobalOptions {
  readonly git?: boolean;
}

const BEGIN = "# guildhall guard";
const END = "# end of guildhall guard";

/** Adds the guard to the repository's pre-commit hook, and leaves alone what else is there. */
export async function installGuard(options: InstallOptions): Promise<number> {
  if (!options.git) throw new ClientError("usage.wrong", "install what? The hook of git is --git; those of agents are in docs/guard.md");
  const file = join(hooksFolder(), "pre-commit");
  const before = existsSync(file) ? readFileSync(file, "utf8") : "#!/bin/sh\n";
  if (before.includes(BEGIN)) {
    print(`${file} has the guard already`);
    return 0;
  }
  if (!/^#!.*\b(sh|bash|dash|zsh)\b/.test(before))
    throw new ClientError("usage.wrong", `${file} is no shell script; add the command \`guildhall guard --git\` to it yourself`);
  // After the first line, so that an early exit further down does not go past it.
  const [first = "", ...rest] = before.split("\n");
  const home = options.home === undefined ? "" : ` --home ${quoted(resolve(options.home))}`;
  const [node, program] = [quoted(process.execPath), quoted(process.argv[1] as string)];
  // A program that was removed or moved must not stop every commit.
  const there = `[ ! -x ${node} ] || [ ! -f ${program} ]`;
  const guard = [BEGIN, `${there} || ${node} ${program} guard --git${home} || exit 1`, END];
  writeFileSync(file, [first, ...guard, ...rest].join("\n"));
  chmodSync(file, 0o755);
  print(options.json ? JSON.stringify({ file }) : `${file} now asks the guard before every commit`);
  return 0;
}

/** Worktrees share it, and `core.hooksPath` may have moved it. */
function hooksFolder(): string {
  try {
    const folder = resolve(
      execFileSync("git", ["rev-parse", "--git-path", "hooks"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim(),
    );
    mkdirSync(folder, { recursive: true });
    return folder;
  } catch (error) {
    throw new ClientError("usage.wrong", "this is no git repository", { cause: error });
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
