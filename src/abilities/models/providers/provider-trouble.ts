import type { ErrorCode } from "../../../contract/errors.ts";
import { Failure } from "../../../kernel/failure.ts";
import { CutStream, FilteredAnswer } from "./from-stream.ts";
import { keyNameOf, type ProviderSpec } from "./provider-specs.ts";

/** What went wrong with one attempt, and what follows from it. */
export interface Trouble {
  readonly failure: Failure;
  /** Another attempt may succeed. */
  readonly passing: boolean;
  /** How long the provider asks us to wait; null: it does not say. */
  readonly waitMs: number | null;
}

const SAID_CHARACTERS = 500;
const TOO_LONG =
  /context.?(length|window|size)|maximum (context|prompt|input)|prompt is too long|(input|prompt|request) (is )?too (long|large)|too many (input )?tokens|token (count|limit)[^.]*exceed|exceeds?[^.]*(token|context)|reduce the length/i;
/** Answered with 429 although no waiting helps. Limits that pass by themselves speak of billing too, but say when. */
const NO_CREDIT = /insufficient_quota|exceeded your current quota|credit balance|billing.hard.limit/i;
const COME_BACK = /(?:retry|try again) in ((?:[\d.]+(?:ms|s|m|h))+)|"retryDelay":\s*"([\d.]+s)"/i;
const NO_MODEL = /model[^.]*(not found|does not exist|not supported|unknown)|no such model|not_found_error/i;

interface HttpError {
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string>>;
  readonly responseBody?: string;
}

/** Reads whatever a provider's package has thrown, without loading it. */
export function troubleOf(error: unknown, spec: ProviderSpec, model: string, now: number): Trouble {
  const own = failureIn(error);
  if (own) return { failure: own, passing: false, waitMs: null };
  const { responseHeaders = {}, responseBody = "" } = (error ?? {}) as HttpError;
  const status = statusOf(error);
  const words = wordsOf(error);
  const said = `${words} ${responseBody.slice(0, 5_000)}`;
  // Without the error as its cause: that holds the whole conversation.
  const refusal = (code: ErrorCode, message: string, hint?: string): Trouble => ({
    failure: new Failure(code, `${model}: ${message}`, hint === undefined ? {} : { hint }),
    passing: false,
    waitMs: null,
  });
  const passing = (code: ErrorCode, message: string): Trouble => ({
    failure: new Failure(code, `${model}: ${message}`),
    passing: true,
    waitMs: waitOf(responseHeaders, now) ?? waitIn(said),
  });

  if (error instanceof FilteredAnswer) return refusal("model.refused", words);
  if (error instanceof CutStream || error instanceof SilentProvider) return passing("model.failed", words);
  if (status === undefined) {
    const type = typeOf(error);
    if (/overloaded|rate_limit/.test(type)) return passing("model.busy", words);
    // Errors of packages and connections may quote the conversation; what a provider says inside a stream is no `Error`.
    if (!(error instanceof Error) && TOO_LONG.test(said)) return refusal("model.too_long", words);
    if (/invalid_request|authentication|permission|not_found/.test(type)) return refusal("model.refused", words);
    return passing("model.failed", isRefusedConnection(error) ? `${spec.baseUrl} cannot be reached (${codeOf(error)})` : words);
  }
  if (status >= 200 && status < 300) return passing("model.failed", `the answer broke off in the middle (${codeOf(error)})`);
  if (status === 401)
    return refusal("model.no_key", `the provider does not accept the key: ${words}`, `Check ${keyNameOf(spec)} or the provider's api_key.`);
  // Servers of one's own call it 500, and so does a package that finds it in a stream.
  if (status === 413 || ([400, 422, 500].includes(status) && TOO_LONG.test(said))) return refusal("model.too_long", words);
  if (status === 404 || (status === 400 && NO_MODEL.test(said)))
    return refusal("model.unknown", `the provider does not know it: ${words}`, "Check the model's name and the provider's base_url.");
  if (status === 429 && NO_CREDIT.test(said) && waitIn(said) === null)
    return refusal("model.refused", words, "Add credit at the provider, or name another model.");
  if (status === 429) return passing("model.busy", `the provider asks to wait: ${words}`);
  if (status === 408 || status === 409 || status === 425 || status >= 500) return passing("model.failed", `${status}: ${words}`);
  return refusal("model.refused", `${status}: ${words}`);
}

/** It said nothing for too long. */
export class SilentProvider extends Error {}

function failureIn(error: unknown): Failure | undefined {
  for (let inner = error, depth = 0; inner instanceof Error && depth < 5; inner = inner.cause, depth++)
    if (inner instanceof Failure) return inner;
  return undefined;
}

function wordsOf(error: unknown): string {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  const words = typeof message === "string" && message !== "" ? message : typeof error === "string" ? error : JSON.stringify(error ?? null);
  const line = words.replace(/\s+/g, " ").trim();
  return line.length <= SAID_CHARACTERS ? line : `${line.slice(0, SAID_CHARACTERS).toWellFormed()}…`;
}

/** Of an answer, or of an error inside a stream that gives the number as its code. */
function statusOf(error: unknown): number | undefined {
  const { statusCode, code } = (error ?? {}) as HttpError & { readonly code?: unknown };
  return statusCode ?? (!(error instanceof Error) && typeof code === "number" && code >= 400 && code < 600 ? code : undefined);
}

/** Of errors that come inside a stream, as the provider calls them. */
function typeOf(error: unknown): string {
  const { type, code } = (error ?? {}) as { readonly type?: unknown; readonly code?: unknown };
  return [type, code].filter((one) => typeof one === "string").join(" ");
}

function codeOf(error: unknown): string {
  for (let inner: unknown = error, depth = 0; inner instanceof Error && depth < 5; inner = inner.cause, depth++) {
    const { code } = inner as NodeJS.ErrnoException;
    if (typeof code === "string") return code;
  }
  return "no answer";
}

function isRefusedConnection(error: unknown): boolean {
  return /^(ECONN|ENOTFOUND|EAI_|EHOST|ENET|ETIMEDOUT|UND_ERR|CERT_|DEPTH_ZERO)/.test(codeOf(error));
}

/** `retry-after` in seconds or as a date, `retry-after-ms`, or the time at which the exhausted limit begins anew. */
export function waitOf(headers: Readonly<Record<string, string>>, now: number): number | null {
  const precise = Number(headers["retry-after-ms"]);
  if (headers["retry-after-ms"] && precise >= 0) return precise;
  const after = headers["retry-after"];
  if (after) {
    if (Number(after) >= 0) return Number(after) * 1000;
    // A number below zero would be read as a date.
    const at = Number(after) < 0 ? Number.NaN : Date.parse(after);
    if (!Number.isNaN(at)) return Math.max(0, at - now);
  }
  for (const what of ["requests", "tokens"]) {
    if (headers[`x-ratelimit-remaining-${what}`] === "0") return durationOf(headers[`x-ratelimit-reset-${what}`] ?? "");
    const at = Date.parse(headers[`anthropic-ratelimit-${what}-reset`] ?? "");
    if (headers[`anthropic-ratelimit-${what}-remaining`] === "0" && !Number.isNaN(at)) return Math.max(0, at - now);
  }
  return null;
}

/** Where no header says when to come back, the words may. */
function waitIn(said: string): number | null {
  const [, told, delay] = COME_BACK.exec(said) ?? [];
  return durationOf(told ?? delay ?? "");
}

/** `1s`, `6m0s`, `120ms`. */
function durationOf(text: string): number | null {
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  const parts = [...text.matchAll(/([\d.]+)(ms|s|m|h)/g)];
  return parts.length === 0 ? null : parts.reduce((sum, [, count, unit]) => sum + Number(count) * (units[unit as string] as number), 0);
}
