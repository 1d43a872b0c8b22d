import type { WireError } from "../../contract/wire.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { Redaction } from "../../kernel/redact.ts";

/** Every refusal has the same shape, from the error table. What we did not foresee is logged, and told without its insides. */
export function errorResponse(error: unknown, log: Log, redaction: Redaction): Response {
  const failure = foreseen(error, log);
  const { status, retry } = failure.entry;
  const body: WireError = { code: failure.code, message: failure.message, hint: failure.hint, retry, details: { ...failure.details } };
  const headers = new Headers({ "cache-control": "no-store" });
  if (status === 401) headers.set("www-authenticate", "Bearer");
  if (retry === "later" && (status === 429 || status === 503)) headers.set("retry-after", "1");
  return Response.json({ error: redaction.value(body) }, { status, headers });
}

export function foreseen(error: unknown, log: Log): Failure {
  if (error instanceof Failure && error.code !== "internal.bug") return error;
  log.error("a request failed unexpectedly", { error: error instanceof Error ? error.message : String(error) });
  return new Failure("internal.bug", "something went wrong inside Guildhall");
}
