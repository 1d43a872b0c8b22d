/** A place in a hierarchy: a list of elements, never a joined string. */
export type Scope = readonly string[];

/**
 * One text per scope, for keys and prefix searches. Every element is escaped and closed by "/", so that
 * ["users","1"] is no prefix of ["users","12"], and ["a/b"] is not ["a","b"].
 */
export function encodeScope(scope: Scope): string {
  let text = "";
  for (const element of scope) text += /[%/]/.test(element) ? `${escapeElement(element)}/` : `${element}/`;
  return text;
}

function escapeElement(element: string): string {
  return element.replace(/[%/]/g, (character) => (character === "%" ? "%25" : "%2F"));
}

export function decodeScope(text: string): string[] {
  if (text === "") return [];
  return text
    .slice(0, -1)
    .split("/")
    .map((element) => element.replace(/%2F/g, "/").replace(/%25/g, "%"));
}

/** The smallest text above every text that begins with `prefix`: scopes end in "/", whose successor is "0". */
export function scopeUpperBound(prefix: string): string {
  return prefix === "" ? "\u{10FFFF}" : `${prefix.slice(0, -1)}0`;
}
