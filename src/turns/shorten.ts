/** What is shown of a result that has been read already. */
export const SHORT_RESULT = 1_500;
const LONG_ARGUMENTS = 2_000;
const SHORT_ARGUMENT = 400;

/** The beginning, and how much is left out. */
export function shortText(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters).toWellFormed()}\n[… ${text.length - characters} characters are left out here; they were shown before …]`;
}

/** Still an object in JSON, as providers want it; what is long in it is cut. The same text where nothing is. */
export function shortArguments(args: string): string {
  if (args.length <= LONG_ARGUMENTS) return args;
  let written: unknown;
  try {
    written = JSON.parse(args);
  } catch {
    written = null;
  }
  if (typeof written !== "object" || written === null || Array.isArray(written))
    return JSON.stringify({ left_out: shortText(args, SHORT_ARGUMENT) });
  const short = JSON.stringify(Object.fromEntries(Object.entries(written).map(([name, value]) => [name, shortValue(value)])));
  return short.length <= 4 * LONG_ARGUMENTS ? short : JSON.stringify({ left_out: shortText(args, SHORT_ARGUMENT) });
}

function shortValue(value: unknown): unknown {
  if (typeof value === "string") return shortText(value, SHORT_ARGUMENT);
  const whole = JSON.stringify(value);
  return whole.length <= SHORT_ARGUMENT ? value : shortText(whole, SHORT_ARGUMENT);
}
