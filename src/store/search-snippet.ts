import { termsOf } from "./search-terms.ts";

const LENGTH = 160;
const LEAD = 40;

/** A piece of the text around the first word that was looked for, with every such word between « and ». */
export function snippetOf(text: string, wanted: ReadonlySet<string>): string {
  const isWanted = (word: string): boolean => termsOf(word).some((term) => wanted.has(term));
  const words = /[\p{L}\p{N}\p{M}]+/gu;
  let first = 0;
  for (const match of text.matchAll(words)) {
    if (!isWanted(match[0])) continue;
    first = match.index;
    break;
  }
  const start = first <= LEAD ? 0 : text.indexOf(" ", first - LEAD) + 1 || first;
  const piece = text.slice(Math.min(start, first), Math.min(start, first) + LENGTH);
  const marked = piece.replace(words, (word) => (isWanted(word) ? `«${word}»` : word)).replace(/\s+/g, " ");
  return `${start > 0 ? "…" : ""}${marked}${start + LENGTH < text.length ? "…" : ""}`;
}
