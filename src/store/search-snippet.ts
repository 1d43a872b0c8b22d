import { termsOf } from "./search-terms.ts";

const LENGTH = 160;
const LEAD = 40;
/** How far into a text the first word is looked for: word by word, a long one would take the event loop for itself. */
const LOOKED_AT = 20_000;

/** A piece of the text around the first word that was looked for, with every such word between `before` and `after`. */
export function snippetOf(text: string, wanted: (term: string) => boolean, before = "«", after = "»"): string {
  const isWanted = (word: string): boolean => termsOf(word).some(wanted);
  const words = /[\p{L}\p{N}\p{M}]+/gu;
  let first = 0;
  for (const match of text.slice(0, LOOKED_AT).matchAll(words)) {
    if (!isWanted(match[0])) continue;
    first = match.index;
    break;
  }
  const start = first <= LEAD ? 0 : text.indexOf(" ", first - LEAD) + 1 || first;
  const piece = text.slice(Math.min(start, first), Math.min(start, first) + LENGTH);
  const marked = piece.replace(words, (word) => (isWanted(word) ? `${before}${word}${after}` : word)).replace(/\s+/g, " ");
  return `${start > 0 ? "…" : ""}${marked}${start + LENGTH < text.length ? "…" : ""}`;
}
