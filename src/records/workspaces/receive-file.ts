import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Directory } from "./directory.ts";
import { codeOf } from "./refusals.ts";
import { quoted } from "./workspace-path.ts";
import type { Written } from "./write-file.ts";

export interface Receiving {
  readonly maxBytes: number;
  readonly secluded: boolean;
  readonly newId: NewId;
}

/**
 * What comes piece by piece becomes a file when all of it is there; whatever has the name already stays. What somebody puts there in the
 * very moment of the renaming is replaced: a link itself, and not what it points to.
 */
export async function receiveFile(
  directory: Directory,
  name: string,
  path: string,
  pieces: AsyncIterable<Uint8Array>,
  { maxBytes, secluded, newId }: Receiving,
): Promise<Written> {
  await mustBeFree(directory, name, path);
  const partial = `.guildhall-${newId()}.partial`;
  const handle = await directory.create(partial, secluded ? 0o600 : 0o666);
  let size = 0;
  try {
    try {
      for await (const piece of pieces) {
        size += piece.byteLength;
        if (size > maxBytes) throw new Failure("workspace.too_large", `${quoted(path)} is larger than ${maxBytes} bytes`);
        await handle.writeFile(piece);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    await mustBeFree(directory, name, path);
    await directory.move(partial, directory, name);
  } catch (error) {
    await directory.unlink(partial).catch(() => {});
    throw error;
  }
  await directory.sync();
  return { created: true, size };
}

async function mustBeFree(directory: Directory, name: string, path: string): Promise<void> {
  const isThere = await directory.lstat(name).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === "ENOENT") return false;
      throw error;
    },
  );
  if (isThere) throw new Failure("workspace.conflict", `${quoted(path)} exists already`);
}
