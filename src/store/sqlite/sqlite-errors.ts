import { Failure } from "../../kernel/failure.ts";

/** Primary result codes, https://sqlite.org/rescode.html */
const [BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, NOTADB] = [5, 6, 8, 10, 11, 13, 14, 15, 26];

function primaryCode(error: unknown): number | undefined {
  const extended = (error as { errcode?: unknown } | null)?.errcode;
  return typeof extended === "number" ? extended & 0xff : undefined;
}

export function isBusy(error: unknown): boolean {
  const primary = primaryCode(error);
  return primary === BUSY || primary === LOCKED || primary === PROTOCOL;
}

/** After these the connection cannot be trusted: what the operating system said of the file may already be forgotten. */
export function needsReopen(error: unknown): boolean {
  const primary = primaryCode(error);
  return primary === IOERR || primary === CORRUPT || primary === CANTOPEN || primary === NOTADB;
}

/** Translates what SQLite says into our error table; anything that is not about the file or the disk stays as it is. */
export function sqliteFailure(error: unknown, path: string): unknown {
  const said = error instanceof Error ? error.message : String(error);
  const failure = (code: ConstructorParameters<typeof Failure>[0], message: string) => new Failure(code, message, { cause: error });
  switch (primaryCode(error)) {
    case CORRUPT:
    case NOTADB:
      return failure("store.corrupt", `${path} is damaged or is not a database (${said})`);
    case FULL:
      return failure("store.full", `no room left to write ${path}`);
    case READONLY:
      return failure("store.unwritable", `${path} cannot be written (${said})`);
    case IOERR:
      return failure("store.unavailable", `reading or writing ${path} failed (${said})`);
    case CANTOPEN:
      return failure("store.unavailable", `${path} cannot be opened (${said})`);
    case BUSY:
    case LOCKED:
    case PROTOCOL:
      return failure("store.contention", `${path} is kept locked by another program`);
    default:
      return error;
  }
}
