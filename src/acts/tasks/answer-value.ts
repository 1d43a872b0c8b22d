/** The line that a delegated agent was told to end with: words for the model, and no part of its result. */
const CLOSING = /<TASK [\w-]+ COMPLETED>$/;
/** What is deeper can be read, but neither checked nor written again: that goes down into it call by call. */
const DEEPEST = 500;
const FENCED = /```[\w-]*[ \t]*\n([\s\S]*?)\n[ \t]*```/g;

/** The blanks around it are not part of the pattern: looked for there, each of a hundred thousand was tried with all that follow. */
export function withoutClosing(text: string): string {
  const said = text.trimEnd();
  const at = said.search(CLOSING);
  return at < 0 ? text : said.slice(0, at).trimEnd();
}

/**
 * The JSON that an answer is, or has in it: all of it, the last code fence that holds any, or what stands between its first and last brace.
 * Undefined: there is none, or it is nested too deeply to be kept.
 */
export function jsonIn(answer: string): { readonly value: unknown } | undefined {
  const text = withoutClosing(answer).trim();
  const fences = [...text.matchAll(FENCED)].map((match) => match[1] as string).reverse();
  for (const candidate of [text, ...fences, between(text, "{", "}"), between(text, "[", "]")]) {
    const found = parsed(candidate);
    if (found) return found;
  }
  return undefined;
}

function between(text: string, open: string, close: string): string {
  const [from, to] = [text.indexOf(open), text.lastIndexOf(close)];
  return from < 0 || to < from ? "" : text.slice(from, to + 1);
}

function parsed(text: string): { readonly value: unknown } | undefined {
  if (text.trim() === "") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isTooDeep(value) ? undefined : { value };
  } catch {
    return undefined;
  }
}

function isTooDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; depth <= DEEPEST; depth++) {
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}
