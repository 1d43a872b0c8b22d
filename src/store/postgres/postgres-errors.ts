import type { ErrorCode } from "../../contract/errors.ts";
import { Failure } from "../../kernel/failure.ts";

interface PostgresError {
  readonly code?: string;
  readonly message?: string;
  readonly severity?: string;
}

/** The transaction lost against another one; the same body may run again at once. */
export function isContention(error: unknown): boolean {
  const code = (error as PostgresError | null)?.code;
  return code === "40001" || code === "40P01" || code === "55P03";
}

/** The connection or the server went away (or became a replica): with a new connection the body may run again. */
export function isDisconnect(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof Failure) return false;
  const code = (error as PostgresError).code ?? "";
  if (/^(08|57P0|53300|25006|25P03|25P04)/.test(code)) return true;
  if (/^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|EMFILE|ENFILE)/.test(code)) return true;
  return code === "" && /terminated|Connection|timeout expired|timeout exceeded|read timeout|not queryable|socket/i.test(error.message);
}

export function postgresFailure(error: unknown, place: string): unknown {
  if (error instanceof Failure) return error;
  const said = error instanceof Error ? error.message || (error as PostgresError).code || "no answer" : String(error);
  const failure = (code: ErrorCode, message: string) => new Failure(code, message, { cause: error });
  const code = (error as PostgresError | null)?.code ?? "";
  if (/^28|^3D000/.test(code)) return failure("store.refused_login", `PostgreSQL at ${place} refused us: ${said}`);
  if (code === "25006") return failure("store.read_only", `PostgreSQL at ${place} is a read-only replica`);
  if (code === "53100" || code === "53200") return failure("store.full", `PostgreSQL at ${place} has no room left: ${said}`);
  if (isContention(error)) return failure("store.contention", `PostgreSQL at ${place} is too busy with the same rows: ${said}`);
  if (code.startsWith("22")) return failure("request.malformed", `the database cannot hold this value: ${said}`);
  if (code.startsWith("54")) return failure("request.too_large", `the database cannot hold a value of this size: ${said}`);
  if (code === "57014") return failure("store.unavailable", `a statement took too long on PostgreSQL at ${place}`);
  if (isDisconnect(error)) return failure("store.unavailable", `PostgreSQL at ${place} does not answer: ${said}`);
  return error;
}
