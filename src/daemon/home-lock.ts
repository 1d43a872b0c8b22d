import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Failure } from "../kernel/failure.ts";
import { readDaemonFile } from "./daemon-file.ts";

export interface HomeLock {
  release(): void;
}

const SQLITE_BUSY = 5;

/**
 * Makes the home ours alone. An exclusive SQLite transaction on an empty file, held for the life of the process: the operating
 * system lets go of it even after kill -9, and no process id can be mistaken for another's.
 * Nothing else in this process may open and close the file: on POSIX that drops the lock. It is never deleted, for the same
 * name could then be locked twice.
 */
export function lockHome(home: string): HomeLock {
  let db: DatabaseSync | undefined;
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    db = new DatabaseSync(join(home, "daemon.lock"), { timeout: 0 });
    // Nothing is ever written, so nothing need be journalled: no second file lies about.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    db?.close();
    throw ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY ? alreadyRunning(home) : unusable(home, error);
  }
  const held = db;
  return { release: () => held.close() };
}

function alreadyRunning(home: string): Failure {
  const other = readDaemonFile(home);
  const who = other ? ` (process ${other.pid}, ${other.url})` : "";
  return new Failure("daemon.already_running", `a daemon already runs on ${home}${who}`);
}

function unusable(home: string, error: unknown): Failure {
  const said = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  return new Failure("home.unusable", `${home} cannot be used as a home: this user cannot write there (${said})`, { cause: error });
}
