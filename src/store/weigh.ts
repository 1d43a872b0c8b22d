import type { SearchNode } from "./search-query.ts";

export type Leaf = Extract<SearchNode, { readonly is: "phrase" | "prefix" }>;

/** How soon more of the same word stops to count, and how much a long text must have more of it. The usual values. */
const K = 1.2;
const B = 0.75;

/** What is looked for; what must not be there weighs nothing. */
export function leavesOf(node: SearchNode): Leaf[] {
  switch (node.is) {
    case "phrase":
    case "prefix":
      return [node];
    case "without":
      return leavesOf(node.wanted);
    default:
      return node.parts.flatMap(leavesOf);
  }
}

/** How well each of these texts, given as its terms, fits: by how often it has each word, its length, and how rare the word is among them. */
export function weigh(texts: readonly string[], leaves: readonly Leaf[]): number[] {
  const padded = texts.map((text) => ` ${text} `);
  const average = padded.reduce((sum, text) => sum + text.length, 0) / Math.max(1, padded.length);
  const scores = texts.map(() => 0);
  for (const leaf of leaves) {
    const needle = leaf.is === "phrase" ? ` ${leaf.terms.join(" ")} ` : ` ${leaf.term}`;
    const counts = padded.map((text) => countOf(text, needle));
    const having = counts.filter((count) => count > 0).length;
    const rarity = Math.log(1 + (texts.length - having + 0.5) / (having + 0.5));
    for (const [index, count] of counts.entries()) {
      const length = 1 - B + (B * (padded[index] as string).length) / average;
      scores[index] = (scores[index] as number) + (rarity * (count * (K + 1))) / (count + K * length);
    }
  }
  return scores;
}

function countOf(text: string, needle: string): number {
  let count = 0;
  // The blank after one is the blank before the next.
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length - 1)) count++;
  return count;
}
