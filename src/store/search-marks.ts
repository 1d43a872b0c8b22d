/**
 * A mark is a word of the index that stands in no text: it begins with a character that is neither letter nor digit, of which words consist
 * (search-terms.ts), but that both databases take for a part of a word. Two names never make one mark, whatever their letters.
 */
const FIRST = "\u{E000}";

export function markTerm(mark: string): string {
  return FIRST + Buffer.from(mark).toString("hex");
}
