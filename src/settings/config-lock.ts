import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../kernel/failure.ts";

const SQLITE_BUSY = 5;
const PATIENCE_MS = 10_000;
const LOOK_AGAIN_MS = 20;

/**
 * Runs the body while nobody else on this machine edits the file. An exclusive SQLite transaction on an empty file beside it: the
 * operating system lets go of it even after kill -9, so that no lock is ever stale, and no process id can be mistaken for another's.
 * The file stays: removing it could give two processes a lock each.
 */
export async function withConfigLock<T>(file: string, body: () => T): Promise<T> {
  const { DatabaseSync } = await import("node:sqlite");
  const path = join(dirname(file), `.${basename(file)}.lock`);
  for (const deadline = performance.now() + PATIENCE_MS; ; await sleep(LOOK_AGAIN_MS)) {
    let db: InstanceType<typeof DatabaseSync> | undefined;
    try {
      db = new DatabaseSync(path, { timeout: 0 });
      // Nothing is ever written, so nothing need be journalled.
      db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    } catch (error) {
      db?.close();
      if (((error as { errcode?: number }).errcode ?? 0) % 256 !== SQLITE_BUSY) throw unwritable(file, error);
      if (performance.now() > deadline) throw new Failure("config.changed", `somebody else is editing ${file}`);
      continue;
    }
    try {
      return body();
    } finally {
      db.close();
    }
  }
}

export function unwritable(file: string, cause: unknown): Failure {
  const said = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
  return new Failure("config.unwritable", `${file} cannot be written (${said})`, { cause });
}
