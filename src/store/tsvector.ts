/** PostgreSQL keeps at most this many positions of a word, and none above the last. */
const POSITIONS = 255;
const LAST_POSITION = 16_383;

/** Written out by hand, with positions for phrases: the server's own parser would cut words in its own way. */
export function tsvectorOf(terms: readonly string[]): string {
  const positions = new Map<string, Set<number>>();
  for (const [index, term] of terms.entries()) {
    const known = positions.get(term) ?? new Set();
    if (known.size < POSITIONS) known.add(Math.min(index + 1, LAST_POSITION));
    positions.set(term, known);
  }
  return [...positions].map(([term, places]) => `'${term}':${[...places].join(",")}`).join(" ");
}
