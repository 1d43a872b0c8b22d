import { type Directory, during, type EntryKind } from "./directory.ts";
import { codeOf } from "./refusals.ts";
import { usableName } from "./workspace-path.ts";
import { isPartial } from "./write-file.ts";

export interface Found {
  readonly directory: Directory;
  readonly name: string;
  readonly kind: EntryKind;
  /** Names from where the walk began. */
  readonly components: readonly string[];
}

export interface WalkBudget {
  left: number;
  readonly depth: number;
}

/** Go on, do not, or go on past what is in this folder. */
export type Onward = boolean | "past";

/**
 * Everything below, by name, folders before what is in them, through no link. `visit` answers whether to go on.
 * False: not all was seen.
 */
export async function walkBelow(
  directory: Directory,
  budget: WalkBudget,
  visit: (found: Found) => Promise<Onward>,
  components: readonly string[] = [],
): Promise<boolean> {
  const { entries, all } = await within(directory, budget);
  const folders: string[] = [];
  for (const { name, kind } of entries) {
    const onward = await visit({ directory, name, kind, components: [...components, name] });
    if (onward === false) return false;
    if (onward === true && kind === "directory") folders.push(name);
  }
  if (!all || (components.length >= budget.depth && folders.length > 0)) return false;
  for (const name of folders) {
    try {
      if (!(await during(directory.directory(name), (inner) => walkBelow(inner, budget, visit, [...components, name])))) return false;
    } catch (error) {
      // Removed or swapped for a link while we walked.
      if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) throw error;
    }
  }
  return true;
}

async function within(
  directory: Directory,
  budget: WalkBudget,
): Promise<{ readonly entries: readonly { readonly name: string; readonly kind: EntryKind }[]; readonly all: boolean }> {
  const entries: { name: string; kind: EntryKind }[] = [];
  let all = true;
  for await (const { name, kind } of directory.entries()) {
    all = budget.left-- > 0;
    if (!all) break;
    if (name !== undefined && usableName(name) && !isPartial(name)) entries.push({ name, kind });
  }
  return { entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)), all };
}

/**
 * Removes a folder with all that is in it, and no more entries than the budget allows. False: some of it is still there. What counts
 * is what was removed, so that another call goes on from there.
 */
export async function removeTree(parent: Directory, name: string, budget: WalkBudget): Promise<boolean> {
  const emptied = await during(parent.directory(name), (folder) => removeInside(folder, budget));
  if (emptied) await parent.removeEmpty(name).catch(ignoreGone);
  return emptied;
}

async function removeInside(folder: Directory, budget: WalkBudget): Promise<boolean> {
  if (budget.depth < 0) return false;
  for (;;) {
    const { names, isUsable } = await someOf(folder);
    for (const { name, kind } of names) {
      if (budget.left-- <= 0) return false;
      if (kind !== "directory") await folder.unlink(name).catch(ignoreGone);
      else {
        const inner = { left: budget.left, depth: budget.depth - 1 };
        const removed = await removeTree(folder, name, inner).catch(ignoreGone);
        budget.left = inner.left;
        if (removed === false) return false;
      }
    }
    if (!isUsable || names.length === 0) return isUsable;
  }
}

const AT_ONCE = 1_000;

async function someOf(
  folder: Directory,
): Promise<{ readonly names: readonly { readonly name: string; readonly kind: EntryKind }[]; readonly isUsable: boolean }> {
  const names: { readonly name: string; readonly kind: EntryKind }[] = [];
  for await (const { name, kind } of folder.entries()) {
    if (name === undefined) return { names, isUsable: false };
    names.push({ name, kind });
    if (names.length === AT_ONCE) break;
  }
  return { names, isUsable: true };
}

/** Somebody else removed it meanwhile. */
function ignoreGone(error: unknown): void {
  if (codeOf(error) !== "ENOENT") throw error;
}
