import { ERRORS, type ErrorCode } from "../../../contract/errors.ts";
import type { OpenAiError } from "../../../contract/openai.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { Log } from "../../../kernel/log.ts";
import type { Redaction } from "../../../kernel/redact.ts";
import type { RunError } from "../../../records/sessions/runs.ts";
import { foreseen } from "../error-response.ts";

/** Where clients of OpenAI's API look for something else than our own status and code. */
const OTHERWISE: Partial<Record<ErrorCode, { readonly status?: number; readonly code?: string }>> = {
  "request.malformed": { status: 400 },
  "request.unauthenticated": { code: "invalid_api_key" },
  "agent.unknown": { code: "model_not_found" },
  "model.too_long": { status: 400, code: "context_length_exceeded" },
  "budget.exceeded": { code: "insufficient_quota" },
  "request.busy": { code: "rate_limit_exceeded" },
};

/** A refusal of what was sent; `param` names the field. */
export function badRequest(param: string | null, message: string): Failure {
  return new Failure("request.malformed", message, param === null ? {} : { details: { param } });
}

/** A run that ended without an answer, as what is to be told about it. The insides of a defect are the operator's to see, with the run. */
export function failureOf(error: RunError | null): Failure {
  const code = error && Object.hasOwn(ERRORS, error.code) ? (error.code as ErrorCode) : "internal.bug";
  return new Failure(code, code === "internal.bug" ? "something went wrong inside Guildhall" : (error?.message ?? ""));
}

export function openAiError(failure: Failure): { readonly status: number; readonly body: OpenAiError } {
  const { entry, code, message, hint, details } = failure;
  const { status = entry.status, code: theirs = code } = OTHERWISE[failure.code] ?? {};
  const param = typeof details.param === "string" ? details.param : null;
  const told = code === "request.malformed" && param !== null ? `${param}: ${message}` : message;
  const words = code === "request.malformed" ? told : `${told.replace(/\.$/, "")}. ${hint}`;
  return { status, body: { error: { message: words, type: typeOf(status, theirs), param, code: theirs } } };
}

/** The official clients try 409, 429 and 5xx again by themselves, unless they are told that it will not help. */
export function openAiResponse(error: unknown, log: Log, redaction: Redaction): Response {
  const failure = foreseen(error, log);
  const { status, body } = openAiError(failure);
  const { retry } = failure.entry;
  const headers = new Headers({ "cache-control": "no-store", "x-should-retry": String(retry === "later") });
  if (status === 401) headers.set("www-authenticate", "Bearer");
  if (retry === "later" && (status === 429 || status === 503)) headers.set("retry-after", "1");
  return Response.json(redaction.value(body), { status, headers });
}

function typeOf(status: number, code: string): string {
  if (code === "insufficient_quota") return "insufficient_quota";
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}
