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
  return paint(process.stdout).bold(text);
}

const STYLES = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39], cyan: [36, 39] } as const;
export type Paint = { readonly [Style in keyof typeof STYLES]: (text: string) => string };

/** Colours where a person looks who wants them; elsewhere the text as it is. */
export function paint(stream: { readonly isTTY?: boolean }): Paint {
  const wanted = stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  const style =
    ([on, off]: readonly [number, number]) =>
    (text: string): string =>
      wanted ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return Object.fromEntries(Object.entries(STYLES).map(([name, codes]) => [name, style(codes)])) as unknown as Paint;
}

/** One line of at most so many characters, without what a terminal would obey. */
export function oneLine(text: string, most: number): string {
  const line = harmless(text.slice(0, 8 * most).replace(/\s+/g, " ")).trim();
  return line.length <= most ? line : `${line.slice(0, most - 1).toWellFormed()}…`;
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
