import { termsOf } from "../../store/search-terms.ts";

/** Enough of a note to weigh it. */
const LOOKED_AT = 500;

/** By how many of the words they have, rare ones before common ones, short notes before long ones. The same on both databases. */
export function bestFirst<One extends { readonly text: string }>(notes: readonly One[], text: string): One[] {
  const wanted = [...new Set(termsOf(text))];
  const words = notes.map((note) => new Set(termsOf(note.text.slice(0, LOOKED_AT))));
  const weights = wanted.map((word) => Math.log(1 + notes.length / (1 + words.filter((one) => one.has(word)).length)));
  const scores = words.map(
    (one) => wanted.reduce((sum, word, index) => sum + (one.has(word) ? (weights[index] as number) : 0), 0) / Math.sqrt(10 + one.size),
  );
  return notes
    .map((note, index) => ({ note, score: scores[index] as number }))
    .sort((a, b) => b.score - a.score)
    .map(({ note }) => note);
}
