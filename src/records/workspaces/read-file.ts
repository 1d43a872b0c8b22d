import { Failure } from "../../kernel/failure.ts";
import { type Directory, during, type HeldEntry } from "./directory.ts";
import { allLinksInside, type LinkSearch } from "./hard-links.ts";
import { refuseKind } from "./refusals.ts";
import { quoted } from "./workspace-path.ts";

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
  return during(directory.entry(name), async (entry) => {
    await refuseForeign(root, entry, path, limits);
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

/** Only a file, and none that has a name outside the root as well. */
export async function refuseForeign(root: Directory, entry: HeldEntry, path: string, search: LinkSearch): Promise<void> {
  if (entry.kind !== "file") throw refuseKind(path, entry.kind, "a file");
  if (entry.stats.nlink > 1n && !(await allLinksInside(root, entry, search)))
    throw new Failure("workspace.outside", `${quoted(path)} is a hard link, and not all of its names were found inside the workspace`, {
      hint: "Remove it and write a copy instead.",
    });
}
