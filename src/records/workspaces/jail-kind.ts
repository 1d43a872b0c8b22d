import { closeSync, constants, fstatSync, openSync, statSync } from "node:fs";

/**
 * How the jail holds on this system.
 * `proc-handles` (Linux): every step goes through the handle of the directory before it, as `/proc/self/fd/<n>/<name>`.
 * `nofollow-any` (macOS): every path is opened with O_NOFOLLOW_ANY, so that no link in it is followed. Our tests do not run there.
 * `none`: nothing can be opened safely, and nothing is.
 */
export type JailKind = "proc-handles" | "nofollow-any" | "none";

/** Names a file without opening it: devices and pipes notice nothing. The same number on every Linux that Node runs on. */
export const O_PATH = 0o10000000;
export const O_NOFOLLOW_ANY = 0x20000000;

export function jailKind(platform: NodeJS.Platform = process.platform, handlesAt = "/proc/self/fd"): JailKind {
  if (platform === "darwin") return "nofollow-any";
  return platform === "linux" && handlesWork(handlesAt) ? "proc-handles" : "none";
}

/** In a container without /proc, or with another's, nothing would be checked: so it is tried. */
function handlesWork(handlesAt: string): boolean {
  let handle: number | undefined;
  try {
    handle = openSync("/", O_PATH | constants.O_NOFOLLOW | constants.O_DIRECTORY);
    const held = fstatSync(handle, { bigint: true });
    const found = statSync(`${handlesAt}/${handle}/.`, { bigint: true });
    return held.dev === found.dev && held.ino === found.ino;
  } catch {
    return false;
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}
