/** The line that a delegated agent was told to end with: words for the model, and no part of its result. */
const CLOSING = /\s*<TASK [\w-]+ COMPLETED>\s*$/;
const FENCED = /```[\w-]*[ \t]*\n([\s\S]*?)\n[ \t]*```/g;

export function withoutClosing(text: string): string {
  return text.replace(CLOSING, "");
}

/**
 * The JSON that an answer is, or has in it: all of it, the last code fence that holds any, or what stands between its first and last brace.
 * Undefined: there is none.
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
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
