import { accessSync, constants, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock } from "../../kernel/clock.ts";
import { Failure } from "../../kernel/failure.ts";
import { Connection } from "./connection.ts";
import { sqliteFailure } from "./sqlite-errors.ts";

/** "GUIL": tells our file from another program's. */
const APPLICATION_ID = 0x4755494c;
/** Before 3.51.3 a WAL reset could corrupt the database (https://sqlite.org/wal.html#walresetbug). */
const OLDEST_SQLITE = [3, 51, 3] as const;
/** A full check of a small file costs milliseconds; a large one is checked page by page as it is used. */
const CHECKED_BYTES = 16 * 1024 * 1024;

/** 32 MB: the log is moved into the file before (`checkpointer.ts`), unless writers leave no moment for it. */
const LONG_LOG_PAGES = 8_000;

/** Makes sure, without changing anything, that the path holds nothing, or a sound database of ours. */
export function inspectDatabase(path: string, clock: Clock): void {
  if (existsSync(path)) {
    try {
      accessSync(path, constants.R_OK | constants.W_OK);
    } catch (error) {
      throw new Failure("store.unwritable", `${path} cannot be read and written by this user`, { cause: error });
    }
    if (statSync(path).size > 0) inspectExisting(path, clock);
    return;
  }
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw new Failure("store.unwritable", `${dirname(path)} cannot be written by this user`, { cause: error });
  }
}

function inspectExisting(path: string, clock: Clock): void {
  let probe: Connection | undefined;
  try {
    // Read-only: closing it does not even move the write-ahead log into the file.
    probe = new Connection({ path, readOnly: true, clock });
    const id = probe.db.prepare("PRAGMA application_id").get()?.application_id;
    if (id !== APPLICATION_ID)
      throw new Failure("store.corrupt", `${path} is another program's database`, { hint: "Choose another --home." });
    if (statSync(path).size > CHECKED_BYTES) return;
    const said = probe.db.prepare("PRAGMA quick_check(1)").get()?.quick_check;
    if (said !== "ok") throw new Failure("store.corrupt", `${path} is damaged (${said})`);
  } catch (error) {
    throw sqliteFailure(error, path);
  } finally {
    probe?.close();
  }
}

/** Opens the writer: write-ahead log, and an fsync before every acknowledgement. */
export function openWriter(path: string, clock: Clock): Connection {
  try {
    const connection = new Connection({ path, readOnly: false, clock });
    assertVersion(connection);
    const known = connection.db.prepare("PRAGMA application_id").get()?.application_id;
    if (known !== APPLICATION_ID) connection.db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    connection.db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = ${LONG_LOG_PAGES};`);
    return connection;
  } catch (error) {
    throw sqliteFailure(error, path);
  }
}

function assertVersion(connection: Connection): void {
  const version = connection.db.prepare("select sqlite_version() as version").get()?.version as string;
  const parts = version.split(".").map(Number);
  for (const [index, oldest] of OLDEST_SQLITE.entries()) {
    const part = parts[index] ?? 0;
    if (part > oldest) return;
    if (part < oldest)
      throw new Failure("store.outdated_sqlite", `this Node brings SQLite ${version}; ${OLDEST_SQLITE.join(".")} is needed`);
  }
}
