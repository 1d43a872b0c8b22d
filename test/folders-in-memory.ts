import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";

const MEMORY = "/dev/shm";
const NAME = "guildhall-tests-";
const ROOM_BYTES = 2 * 1024 ** 3;

/**
 * Whatever asks for a temporary folder from now on gets one in memory, where there is one with room. Programs are killed in the tests, machines
 * are not: what reached the system is as safe as on a disk, and how busy the disk is changes nothing.
 */
export function foldersInMemory(): void {
  if (process.env.TMPDIR?.startsWith(join(MEMORY, NAME)) || !hasRoom()) return;
  for (const name of readdirSync(MEMORY)) if (isLeftBehind(name)) rmSync(join(MEMORY, name), { recursive: true, force: true });
  const folder = mkdtempSync(join(MEMORY, `${NAME}${process.pid}-`));
  // As /tmp is: some programs run as somebody else.
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
  // Several projects of one run share it, and each removes its own things when it ends.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
}

function hasRoom(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > ROOM_BYTES;
}

/** By tests that were killed. */
function isLeftBehind(name: string): boolean {
  const [, pid] = name.match(/^guildhall-tests-(\d+)-/) ?? [];
  return pid !== undefined && !existsSync(`/proc/${pid}`);
}
