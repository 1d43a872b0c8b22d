import { Failure } from "../../kernel/failure.ts";
import { type Directory, during, type HeldEntry } from "./directory.ts";
import { allLinksInside, type LinkSearch, onlyNameInside } from "./hard-links.ts";
import { refuseKind } from "./refusals.ts";
import { quoted } from "./workspace-path.ts";

/** A file that another program writes all the time is there in between. */
const TRIES = 20;

export interface Part {
  readonly offset?: number;
  readonly limit?: number;
}

export interface FileContent {
  readonly bytes: Uint8Array;
  readonly offset: number;
  /** Of the whole file, when it was opened. */
  readonly size: number;
  /** Whether there is more after this part. */
  readonly more: boolean;
}

/** Of a file whose every name is below the root; a part of it, or all of it within the limit. */
export async function readFile(
  root: Directory,
  directory: Directory,
  name: string,
  path: string,
  part: Part,
  limits: LinkSearch & { readonly fileBytes: number },
): Promise<FileContent> {
  return withOwnFile(root, directory, name, path, limits, async (entry) => {
    const size = Number(entry.stats.size);
    const offset = part.offset ?? 0;
    if (!Number.isSafeInteger(offset) || offset < 0) throw new Failure("workspace.malformed", "offset must be a whole number from 0 on");
    if (part.limit !== undefined && (!Number.isSafeInteger(part.limit) || part.limit < 0))
      throw new Failure("workspace.malformed", "limit must be a whole number from 0 on");
    if (part.limit === undefined && size - offset > limits.fileBytes)
      throw new Failure("workspace.too_large", `${quoted(path)} has ${size} bytes; at most ${limits.fileBytes} are read at once`, {
        hint: "Read it in parts, with offset and limit.",
      });
    const wanted = Math.min(part.limit ?? limits.fileBytes, limits.fileBytes, Math.max(0, size - offset));
    const bytes = await during(entry.openForReading(), async (handle) => {
      const buffer = Buffer.alloc(wanted);
      let filled = 0;
      while (filled < wanted) {
        const { bytesRead } = await handle.read(buffer, filled, wanted - filled, offset + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return buffer.subarray(0, filled);
    });
    return { bytes, offset, size, more: offset + bytes.length < size };
  });
}

/** Only a file, and none that has a name outside the root as well. What is replaced in that moment is looked for again. */
export async function withOwnFile<Result>(
  root: Directory,
  directory: Directory,
  name: string,
  path: string,
  search: LinkSearch,
  body: (entry: HeldEntry) => Promise<Result>,
): Promise<Result> {
  for (let tries = 0; tries < TRIES; tries++) {
    const held = await directory.entry(name);
    try {
      if (await isOwn(root, directory, name, held, path, search)) return await body(held);
    } finally {
      await held.close();
    }
  }
  throw new Failure("workspace.conflict", `${quoted(path)} is replaced again and again by another program`, {
    hint: "Try again when the other program is done.",
  });
}

/** False: it lost its name while we looked. */
async function isOwn(
  root: Directory,
  directory: Directory,
  name: string,
  entry: HeldEntry,
  path: string,
  search: LinkSearch,
): Promise<boolean> {
  if (entry.kind !== "file") throw refuseKind(path, entry.kind, "a file");
  if (entry.stats.nlink === 0n) return false;
  if (entry.stats.nlink === 1n) return onlyNameInside(directory, name, entry, search.clock);
  if (await allLinksInside(root, entry, search)) return true;
  throw new Failure("workspace.outside", `${quoted(path)} is a hard link, and not all of its names were found inside the workspace`, {
    hint: "Remove it and write a copy instead.",
  });
}
