import type { BigIntStats } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../kernel/clock.ts";
import { type Directory, during, type HeldEntry, identityOf } from "./directory.ts";
import { codeOf } from "./refusals.ts";

export interface LinkSearch {
  /** Directory entries to look at, at most. */
  readonly entries: number;
  readonly depth: number;
  readonly clock: Clock;
}

/** How old the last change must be: on older kernels two changes within one tick (at most 10 ms) leave the same time. */
const SETTLED_MS = 50;
const AT_ONCE = 64;

/**
 * A file may have several names, and one of them may belong to somebody else. Package managers link files inside one tree, so the
 * question is not whether there are other names but whether all of them are in here: as many are looked for as the file has.
 *
 * A name that is moved while we look could be counted twice and stand for one outside. Moving a file changes its ctime, which nobody
 * can set: so it must be the same before and after. Moving a folder does not; so a name is counted by its folder's identity, once.
 */
export async function allLinksInside(root: Directory, file: HeldEntry, search: LinkSearch): Promise<boolean> {
  const before = await settled(file, search.clock);
  // It had names when it was opened. Nothing is left to tell whose they were.
  if (before.nlink === 0n) return false;
  const names = new Set<string>();
  const complete = await collect(root, before, names, { left: search.entries, depth: search.depth });
  const after = await file.again();
  return complete && after.nlink === before.nlink && after.ctimeNs === before.ctimeNs;
}

/**
 * Whether the one name that a file has is this one. One that had two when it was opened, and lost the one inside before they were
 * counted, has one as well: somebody else's.
 */
export async function onlyNameInside(directory: Directory, name: string, file: HeldEntry, clock: Clock): Promise<boolean> {
  const kept = await file.keptItsName();
  if (kept !== undefined) return kept;
  const before = await settled(file, clock);
  const named = await directory.lstat(name).catch(() => undefined);
  const after = await file.again();
  return before.nlink === 1n && named !== undefined && identityOf(named) === identityOf(before) && after.ctimeNs === before.ctimeNs;
}

async function settled(file: HeldEntry, clock: Clock): Promise<BigIntStats> {
  const stats = await file.again();
  const age = clock.now() - Number(stats.ctimeMs);
  if (age < 0 || age >= SETTLED_MS) return stats;
  await sleep(SETTLED_MS - age);
  return file.again();
}

interface Budget {
  left: number;
  readonly depth: number;
}

/** Whether as many names were found as the file has. */
async function collect(directory: Directory, file: BigIntStats, names: Set<string>, budget: Budget): Promise<boolean> {
  const folders: string[] = [];
  let files: string[] = [];
  const look = async (): Promise<void> => {
    const found = await Promise.all(files.map((name) => directory.lstat(name).catch(() => undefined)));
    for (const [index, stats] of found.entries())
      if (stats && identityOf(stats) === identityOf(file)) names.add(`${directory.identity}/${files[index]}`);
    files = [];
  };
  for await (const { name, kind } of directory.entries()) {
    if (budget.left-- <= 0) return false;
    if (name === undefined) continue;
    if (kind === "directory") folders.push(name);
    if (kind === "file") files.push(name);
    if (files.length === AT_ONCE) await look();
  }
  await look();
  if (BigInt(names.size) >= file.nlink) return true;
  if (budget.depth === 0) return false;
  for (const name of folders) {
    const inner = { left: budget.left, depth: budget.depth - 1 };
    const complete = await during(directory.directory(name), (folder) => collect(folder, file, names, inner)).catch(ignoreGone);
    budget.left = inner.left;
    if (complete) return true;
    if (budget.left <= 0) return false;
  }
  return false;
}

function ignoreGone(error: unknown): false {
  if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES"].includes(codeOf(error))) return false;
  throw error;
}
