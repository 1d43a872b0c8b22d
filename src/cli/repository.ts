import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import type { Workspace } from "../contract/workspace.ts";

const run = promisify(execFile);
const GIT_MS = 5_000;
const LINKS_AT_MOST = 40;

/**
 * Where somebody works. All worktrees and clones of one repository have the same id: it is made of the address it came from, or of
 * the folder that its worktrees have in common. Outside any repository the folder itself stands for one.
 */
export async function workspaceOf(folder: string, shownAs?: string): Promise<Workspace> {
  const here = realpathSync(folder);
  const [place, origin] = await Promise.all([
    git(here, ["rev-parse", "--show-toplevel", "--git-common-dir"]),
    git(here, ["config", "--get", "remote.origin.url"]),
  ]);
  const [top, common] = place?.split("\n") ?? [];
  if (!top || !common) return { repository: idOf(basename(here), here), tops: tops(here, here, shownAs), prefix: "" };
  const shared = realpathSync(resolve(here, common));
  const address = origin ? normalOrigin(origin, here) : undefined;
  const repository = address
    ? idOf(basename(address), address)
    : idOf(basename(shared) === ".git" ? basename(dirname(shared)) : basename(shared), shared);
  const inside = relative(top, here);
  return { repository, tops: tops(top, here, shownAs), prefix: inside === "" ? "" : `${inside}/` };
}

/** The file's place in its repository; links are followed, since writing goes through them. Git is asked once for each folder. */
export async function placeOf(
  file: string,
  from: string,
  workspaces = new Map<string, Promise<Workspace>>(),
): Promise<{ readonly repository: string; readonly path: string }> {
  const workspaceAt = (folder: string): Promise<Workspace> => {
    const known = workspaces.get(folder) ?? workspaceOf(folder);
    workspaces.set(folder, known);
    return known;
  };
  let existing = resolve(from, file);
  const missing: string[] = [];
  for (let links = 0; !existsSync(existing); ) {
    const target = links < LINKS_AT_MOST ? linkTarget(existing) : undefined;
    links += target === undefined ? 0 : 1;
    if (target === undefined) missing.unshift(basename(existing));
    // Writing to a link that leads nowhere yet makes the file it leads to.
    existing = target ?? dirname(existing);
  }
  const real = join(realpathSync(existing), ...missing);
  const folder = missing.length > 0 ? realpathSync(existing) : dirname(real);
  const start = realpathSync(from);
  let place = await workspaceAt(folder);
  // In no repository the folder where the agent was started stands for one.
  if (place.repository === idOf(basename(folder), folder) && real.startsWith(`${start}/`)) place = await workspaceAt(start);
  return { repository: place.repository, path: relative(realpathSync(place.tops[0] as string), real) };
}

function linkTarget(path: string): string | undefined {
  try {
    return resolve(realpathSync(dirname(path)), readlinkSync(path));
  } catch {
    return undefined;
  }
}

/** `git@host:a/b.git`, `https://user@host/a/b` and `ssh://host/a/b.git/` are one and the same. */
export function normalOrigin(origin: string, from: string): string {
  const short = /^(?:[^@/\s]+@)?([^:/\s]{2,}):(?!\/\/)(.+)$/.exec(origin);
  if (short) return cleaned(`${short[1]?.toLowerCase()}/${short[2]}`);
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(origin) && URL.canParse(origin)) {
    const url = new URL(origin);
    if (url.protocol !== "file:") return cleaned(`${url.hostname.toLowerCase()}/${url.pathname}`);
    return cleaned(url.pathname);
  }
  const path = isAbsolute(origin) ? origin : resolve(from, origin);
  return cleaned(existsSync(path) ? realpathSync(path) : path);
}

function cleaned(address: string): string {
  return address
    .replace(/\/{2,}/g, "/")
    .replace(/\/+$/, "")
    .replace(/\.git$/, "");
}

function idOf(name: string, of: string): string {
  const plain = name.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return `${plain.slice(0, 64) || "repository"}~${createHash("sha256").update(of).digest("hex").slice(0, 8)}`;
}

/** The folder as it is, and as the shell shows it where that goes through a link. */
function tops(top: string, here: string, shownAs: string | undefined): string[] {
  if (!shownAs || shownAs === here || !existsSync(shownAs) || realpathSync(shownAs) !== here) return [top];
  const inside = relative(top, here);
  return inside === "" ? [top, shownAs] : shownAs.endsWith(`/${inside}`) ? [top, shownAs.slice(0, -inside.length - 1)] : [top];
}

async function git(folder: string, args: readonly string[]): Promise<string | undefined> {
  // Inside a hook of git these point at the repository it runs for, which need not be this one.
  const { GIT_DIR: _1, GIT_WORK_TREE: _2, GIT_INDEX_FILE: _3, GIT_PREFIX: _4, GIT_COMMON_DIR: _5, ...env } = process.env;
  try {
    const { stdout } = await run("git", ["-C", folder, ...args], { env, timeout: GIT_MS });
    return stdout.trimEnd();
  } catch {
    return undefined;
  }
}
