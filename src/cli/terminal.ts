import { ERRORS, type ErrorCode } from "../contract/errors.ts";

/** Options every command takes. */
export interface GlobalOptions {
  readonly home?: string;
  readonly config?: string;
  readonly json?: boolean;
}

/** Data goes to stdout, talk to stderr. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function bold(text: string): string {
  return process.stdout.isTTY && !process.env.NO_COLOR ? `\x1b[1m${text}\x1b[22m` : text;
}

/** Text of a model or of a stranger, without what a terminal would obey. */
export function harmless(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "");
}

interface Explained {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
}

/** Says what is wrong and what to do next, and answers the exit code. */
export function explain(error: unknown, json: boolean): number {
  const { code, message, hint } = isExplained(error) ? error : unexpected(error);
  if (json) print(JSON.stringify({ error: { code, message, hint, retry: ERRORS[code].retry } }));
  sayError(message, code, hint);
  return ERRORS[code].exit;
}

/** One line, whatever a database or a stranger put into the message. */
export function sayError(message: string, code: ErrorCode, hint = ERRORS[code].hint as string): void {
  say(`guildhall: ${harmless(message.replace(/\s*[\r\n]+\s*/g, " "))} [${code}]\n  ${hint}`);
}

function isExplained(error: unknown): error is Explained {
  const code = (error as Partial<Explained> | null)?.code;
  return error instanceof Error && typeof code === "string" && Object.hasOwn(ERRORS, code) && "hint" in error;
}

/** A defect of ours: where it happened is all of the stack that fits into a line. */
function unexpected(error: unknown): Explained {
  const place = error instanceof Error ? (error.stack?.match(/\n\s+(at [^\n]+)/)?.[1] ?? "") : "";
  const message = `${error instanceof Error ? error.message : String(error)} ${place}`.trim();
  return { code: "internal.bug", message, hint: ERRORS["internal.bug"].hint };
}
