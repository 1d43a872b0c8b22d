import { constants, lstatSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { PlaceScope } from "../../contract/config.ts";
import { type Place, placeFolder } from "../../kernel/place-folder.ts";

export interface MemoryOwner {
  readonly id: string;
  readonly memoryScope: PlaceScope;
}

/** What of MEMORY.md a model is told. */
export const MEMORY_FILE_CHARACTERS = 8_000;
const MAX_BYTES = 4 * MEMORY_FILE_CHARACTERS;

export function memoryFilePath(home: string, { id, memoryScope }: MemoryOwner, place: Place): string {
  const folder = join(home, "agents", id, "memory");
  return join(folder, ...(memoryScope === "agent" ? [] : [placeFolder(place, memoryScope)]), "MEMORY.md");
}

/**
 * What people have written down for an agent, or for it in this place; null where there is nothing. Only a plain file: a link could show it
 * somebody else's.
 */
export async function readMemoryFile(home: string, owner: MemoryOwner, place: Place): Promise<string | null> {
  const path = memoryFilePath(home, owner, place);
  let handle: Awaited<ReturnType<typeof open>> | undefined;
  try {
    // Every turn asks, and most agents have none: a promise that fails takes fifty times as long.
    if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return null;
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (!stats.isFile()) return null;
    const length = Math.min(stats.size, MAX_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, 0);
    const text = buffer.toString("utf8", 0, bytesRead).replaceAll("\0", "").trim();
    if (text === "") return null;
    if (text.length <= MEMORY_FILE_CHARACTERS && stats.size <= MAX_BYTES) return text.toWellFormed();
    return `${text.slice(0, MEMORY_FILE_CHARACTERS).toWellFormed()}\n[MEMORY.md is longer; only its beginning is told]`;
  } catch {
    return null;
  } finally {
    await handle?.close();
  }
}
