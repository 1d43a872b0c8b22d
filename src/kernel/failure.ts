import { ERRORS, type ErrorCode, type ErrorEntry } from "../contract/errors.ts";

export interface FailureOptions {
  readonly cause?: unknown;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly hint?: string;
}

/** A refusal or a broken part, with its row of the error table. Expected outcomes are values, not failures. */
export class Failure extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly hint: string;

  constructor(code: ErrorCode, message: string, options: FailureOptions = {}) {
    // Messages quote what came from outside, and are stored: a text in the database cannot hold NUL.
    super(message.replaceAll("\0", "\ufffd"), options.cause === undefined ? {} : { cause: options.cause });
    this.name = "Failure";
    this.code = code;
    this.details = options.details ?? {};
    this.hint = options.hint ?? ERRORS[code].hint;
  }

  get entry(): ErrorEntry {
    return ERRORS[this.code];
  }
}

export function isFailure(error: unknown, code?: ErrorCode): error is Failure {
  return error instanceof Failure && (code === undefined || error.code === code);
}

/** Wraps whatever was thrown, so that a caller always has a code to act on. */
export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure("internal.bug", messageOf(error), { cause: error });
}

/** What whatever was thrown says of itself; some things cannot even be written as text. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "something that says nothing of itself";
  }
}
