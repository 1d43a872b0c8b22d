import { ERRORS, type ErrorCode } from "../contract/errors.ts";

/** A refusal by the daemon, or its silence, with its row of the error table. */
export class ClientError extends Error {
  readonly code: ErrorCode;
  readonly hint: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint?: string; details?: Readonly<Record<string, unknown>>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = "ClientError";
    this.code = code;
    this.hint = options.hint ?? ERRORS[code].hint;
    this.details = options.details ?? {};
  }
}
