import { nearest } from "../../kernel/nearest.ts";

/** A name that was probably meant, and how to say so: ` (did you mean "x"?)`, or nothing. */
export type Suggest = (word: string, candidates: Iterable<string>) => { readonly meant: string | undefined; readonly words: string };

/** Each takes a look at every candidate: a workflow of a megabyte of mistakes must not keep a daemon busy for minutes. */
const MOST = 50;

export function suggestions(): Suggest {
  let made = 0;
  return (word, candidates) => {
    const meant = made++ < MOST ? nearest(word.slice(0, 100), candidates) : undefined;
    return { meant, words: meant === undefined ? "" : ` (did you mean "${meant}"?)` };
  };
}

/** The first few names of a list that may be long. */
export function few(names: readonly string[]): string {
  return names.length <= 8 ? names.join(", ") : `${names.slice(0, 8).join(", ")} and ${names.length - 8} more`;
}
