/**
 * Words for the full-text index, made here and not by the database, so that SQLite and PostgreSQL find the same documents:
 * lower case without accents; English endings cut; scripts without spaces cut into pairs of characters.
 */
const WORD = /[\p{L}\p{N}]+/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const MAX_TERM = 64;

export function wordsOf(text: string): string[] {
  return (
    text
      .normalize("NFKD")
      .replace(/\p{M}+/gu, "")
      .toLowerCase()
      .match(WORD) ?? []
  );
}

/** What of a document is indexed: more distinct words than this do not fit into a tsvector. The same on both databases. */
const INDEXED_TERMS = 50_000;

export function indexedTerms(text: string): string[] {
  return termsOf(text).slice(0, INDEXED_TERMS);
}

export function termsOf(text: string): string[] {
  return wordsOf(text).flatMap((word) => (UNSPACED.test(word) ? pairsOf(word) : [stem(word).slice(0, MAX_TERM)]));
}

function pairsOf(word: string): string[] {
  const characters = [...word];
  if (characters.length < 2) return characters;
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`);
}

/**
 * Cuts regular English endings. Deliberately light: plural, -ed, -ing and -ly only, and never below three letters. A heavier
 * stemmer merges more words than people expect in names and code.
 */
export function stem(word: string): string {
  if (word.length < 4 || /[^a-z]/.test(word)) return word;
  let cut = word;
  if (cut.endsWith("ies") && cut.length > 4) cut = `${cut.slice(0, -3)}y`;
  else if (/(ss|sh|ch|x|z)es$/.test(cut)) cut = cut.slice(0, -2);
  else if (cut.endsWith("s") && !/(ss|us|is)$/.test(cut)) cut = cut.slice(0, -1);
  const shorter = cut.endsWith("ing")
    ? cut.slice(0, -3)
    : cut.endsWith("ed")
      ? cut.slice(0, -2)
      : cut.endsWith("ly")
        ? cut.slice(0, -2)
        : cut;
  if (shorter !== cut && shorter.length >= 3 && /[aeiouy]/.test(shorter)) cut = undouble(shorter);
  return cut.length > 3 && cut.endsWith("e") ? cut.slice(0, -1) : cut;
}

function undouble(word: string): string {
  return /([bdfgmnprt])\1$/.test(word) ? word.slice(0, -1) : word;
}
