import { termsOf, wordsOf } from "./search-terms.ts";

/** What to look for. `phrase`: these terms next to each other; `prefix`: a word that begins so. */
export type SearchNode =
  | { readonly is: "phrase"; readonly terms: readonly string[] }
  | { readonly is: "prefix"; readonly term: string }
  | { readonly is: "and" | "or"; readonly parts: readonly SearchNode[] }
  | { readonly is: "without"; readonly wanted: SearchNode; readonly unwanted: SearchNode };

/** Words people type are words, whatever characters they contain. */
export function plainQuery(text: string, match: "all" | "any"): SearchNode | null {
  const parts = [...new Set(termsOf(text))].slice(0, 64).map((term): SearchNode => ({ is: "phrase", terms: [term] }));
  return join(match === "all" ? "and" : "or", parts);
}

/**
 * The syntax for those who ask for it: "a phrase", pref*, -without or NOT without, a OR b; everything else is joined by AND, written or not.
 * Whatever does not parse is taken as words; there are no errors to make.
 */
export function operatorQuery(text: string): SearchNode | null {
  const groups: SearchNode[][] = [[]];
  const unwanted: SearchNode[] = [];
  let not = false;
  for (const [, minus, phrase, word] of text.matchAll(/(-?)(?:"([^"]*)"|([^\s"]+))/g)) {
    if (word === "OR") {
      groups.push([]);
      continue;
    }
    if (word === "AND") continue;
    if (word === "NOT") {
      not = true;
      continue;
    }
    const node = phrase === undefined ? wordNode(word as string) : phraseNode(phrase);
    if (node) (minus || not ? unwanted : (groups.at(-1) as SearchNode[])).push(node);
    not = false;
  }
  const wanted = join(
    "or",
    groups.map((group) => join("and", group)).filter((node) => node !== null),
  );
  const without = join("or", unwanted);
  return wanted && without ? { is: "without", wanted, unwanted: without } : wanted;
}

function wordNode(word: string): SearchNode | null {
  if (!word.endsWith("*")) return phraseNode(word);
  const [term, ...rest] = wordsOf(word);
  return term !== undefined && rest.length === 0 ? { is: "prefix", term } : phraseNode(word);
}

function phraseNode(text: string): SearchNode | null {
  const terms = termsOf(text);
  return terms.length === 0 ? null : { is: "phrase", terms };
}

function join(is: "and" | "or", parts: readonly SearchNode[]): SearchNode | null {
  const [only] = parts;
  return only === undefined ? null : parts.length === 1 ? only : { is, parts };
}

/** Terms consist of letters and digits only (search-terms.ts), so quoting them is safe in both syntaxes. */
export function toFts5(node: SearchNode): string {
  switch (node.is) {
    case "phrase":
      return `"${node.terms.join(" ")}"`;
    case "prefix":
      return `"${node.term}"*`;
    case "without":
      return `(${toFts5(node.wanted)}) NOT (${toFts5(node.unwanted)})`;
    default:
      return `(${node.parts.map(toFts5).join(node.is === "and" ? " AND " : " OR ")})`;
  }
}

export function toTsquery(node: SearchNode): string {
  switch (node.is) {
    case "phrase":
      return `(${node.terms.map((term) => `'${term}'`).join(" <-> ")})`;
    case "prefix":
      return `'${node.term}':*`;
    case "without":
      return `(${toTsquery(node.wanted)} & !(${toTsquery(node.unwanted)}))`;
    default:
      return `(${node.parts.map(toTsquery).join(node.is === "and" ? " & " : " | ")})`;
  }
}
