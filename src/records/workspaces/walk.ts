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

/**
 * Everything below, by name, folders before what is in them, through no link. `visit` answers whether to go on.
 * False: not all was seen.
 */
export async function walkBelow(
  directory: Directory,
  budget: WalkBudget,
  visit: (found: Found) => Promise<boolean>,
  components: readonly string[] = [],
): Promise<boolean> {
  const { entries, all } = await within(directory, budget);
  for (const { name, kind } of entries) if (!(await visit({ directory, name, kind, components: [...components, name] }))) return false;
  const folders = entries.filter(({ kind }) => kind === "directory");
  if (!all || (components.length >= budget.depth && folders.length > 0)) return false;
  for (const { name } of folders) {
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

/** Removes a folder with all that is in it, and no more entries than the budget allows. False: some of it is still there. */
export async function removeTree(parent: Directory, name: string, budget: WalkBudget): Promise<boolean> {
  const emptied = await during(parent.directory(name), (folder) => removeInside(folder, budget));
  if (emptied) await parent.removeEmpty(name);
  return emptied;
}

async function removeInside(folder: Directory, budget: WalkBudget): Promise<boolean> {
  if (budget.depth < 0) return false;
  const names: { readonly name: string; readonly kind: EntryKind }[] = [];
  for await (const { name, kind } of folder.entries()) {
    if (budget.left-- <= 0 || name === undefined) return false;
    names.push({ name, kind });
  }
  for (const { name, kind } of names) {
    if (kind !== "directory") await folder.unlink(name);
    else {
      const inner = { left: budget.left, depth: budget.depth - 1 };
      const removed = await removeTree(folder, name, inner);
      budget.left = inner.left;
      if (!removed) return false;
    }
  }
  return true;
}
