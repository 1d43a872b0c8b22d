import type { NewId } from "../../kernel/ids.ts";
import type { Directory } from "./directory.ts";
import type { LinkSearch } from "./hard-links.ts";
import { withOwnFile } from "./read-file.ts";
import { codeOf } from "./refusals.ts";

const PARTIAL = /^\.guildhall-[0-9a-z]{20}\.partial$/;
/** No write takes that long: what is older was left by a process that died. */
const ABANDONED_MS = 3_600_000;

export interface Written {
  readonly created: boolean;
  readonly size: number;
}

/**
 * Beside the target first, then renamed over it: a reader sees the old content or the new, and nothing is ever written through a
 * link, a hard link included. What is at the target is looked at only to refuse in words; a link put there afterwards is replaced.
 */
export async function writeFile(
  root: Directory,
  directory: Directory,
  name: string,
  path: string,
  content: Uint8Array,
  options: { readonly secluded: boolean; readonly newId: NewId; readonly search: LinkSearch },
): Promise<Written> {
  const replaced = await modeOfReplaced(root, directory, name, path, options.search);
  const partial = `.guildhall-${options.newId()}.partial`;
  const handle = await directory.create(partial, options.secluded ? 0o600 : 0o666);
  try {
    try {
      await handle.writeFile(content);
      if (replaced !== undefined) await handle.chmod(replaced);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await directory.move(partial, directory, name);
  } catch (error) {
    await directory.unlink(partial).catch(() => {});
    throw error;
  }
  await directory.sync();
  return { created: replaced === undefined, size: content.length };
}

/** Who may read and run it stays as it was; rights to act as somebody else do not. */
async function modeOfReplaced(
  root: Directory,
  directory: Directory,
  name: string,
  path: string,
  search: LinkSearch,
): Promise<number | undefined> {
  try {
    return await withOwnFile(root, directory, name, path, search, async ({ stats }) => Number(stats.mode & 0o777n));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

export function isPartial(name: string): boolean {
  return PARTIAL.test(name);
}

/** What a killed process left half written. */
export async function removeAbandoned(directory: Directory, name: string, now: number): Promise<void> {
  try {
    const { mtimeMs } = await directory.lstat(name);
    if (now - Number(mtimeMs) > ABANDONED_MS) await directory.unlink(name);
  } catch {
    // Gone already, or not ours to remove: it does no harm.
  }
}
