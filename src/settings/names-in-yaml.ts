/**
 * `${NAME}` begins a map where YAML reads `{ key: ${NAME} }`, so that the parser never sees it: each of its signs is replaced, before
 * parsing, by one character that is plain text everywhere in YAML. The length stays, and with it every line and column.
 */
const OPENING = "\uEFF0\uEFF1";
const CLOSING = "\uEFF2";
const RESERVED = /[\uEFF0-\uEFF2]/;
const WRITTEN = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
const ENCODED = /\$?\uEFF0\uEFF1([A-Za-z_][A-Za-z0-9_]*)\uEFF2/g;

/** Where the text holds a character that encoding needs for itself; -1 where it can be encoded. */
export function reservedCharacterIn(text: string): number {
  return text.search(RESERVED);
}

/** The text with every `${NAME}` made harmless to a YAML parser. `decodeNames` takes it back exactly. */
export function encodeNames(text: string): string {
  return text.replace(WRITTEN, `${OPENING}$1${CLOSING}`);
}

export function decodeNames(text: string): string {
  return RESERVED.test(text) ? text.replaceAll(OPENING, "$" + "{").replaceAll(CLOSING, "}") : text;
}

/** Replaces each encoded name by its value. `$${NAME}` stands for the text `${NAME}` itself. */
export function substituteNames(encoded: string, lookedUp: (name: string) => string): string {
  if (!RESERVED.test(encoded)) return encoded;
  return encoded.replace(ENCODED, (whole, name: string) => (whole.startsWith("$") ? decodeNames(whole.slice(1)) : lookedUp(name)));
}
