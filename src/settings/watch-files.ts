import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const EVERY_MS = 250;
/** Whoever writes a file in place empties it first: nothing is read before it has stayed as it is for so long. */
const QUIET_MS = 60;
/** Whoever writes without a pause is read all the same: changes must not wait until he is tired. */
const RESTLESS_LOOKS = 6;

/**
 * Calls `changed` after one of the files was written, replaced, made or removed, one call at a time, until the signal aborts; answered
 * with false, it calls again. `from` is how they looked when they were read. It looks instead of being told: that works on every
 * filesystem, across containers, and with editors that swap files.
 */
export async function watchFiles(
  files: readonly string[],
  from: FileLooks,
  changed: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  let seen = from;
  while (!signal.aborted) {
    await sleep(EVERY_MS, undefined, { signal, ref: false }).catch(() => {});
    let now = looksOf(files);
    if (signal.aborted || now === seen) continue;
    for (let before = "", looks = 0; now !== before && looks < RESTLESS_LOOKS; now = looksOf(files), looks++) {
      before = now;
      await sleep(QUIET_MS, undefined, { signal, ref: false }).catch(() => {});
    }
    if (!signal.aborted && (await changed())) seen = now;
  }
}

/** How files look now. Taken before they are read, so that no change falls between reading and watching. */
export type FileLooks = string;

export function looksOf(files: readonly string[]): FileLooks {
  return files
    .map((file) => {
      // A link is followed, so that what it points to is watched, and where it points.
      const found = lookAt(file);
      return found ? `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}` : "none";
    })
    .join("|");
}

function lookAt(file: string) {
  try {
    return statSync(file, { bigint: true });
  } catch {
    return undefined;
  }
}
