import { type Document, isScalar, visit, type YAMLError } from "yaml";

export interface YamlMistake {
  readonly offset: number;
  readonly message: string;
  readonly fix: string;
}

/** In words of our own: the parser's quote the file, and what they quote may be a secret. */
const TOLD: Readonly<Record<string, readonly [message: string, fix: string]>> = {
  TAB_AS_INDENT: ["the line begins with a tab", "Indent with spaces, two for each level."],
  BAD_INDENT: ["the line is not indented like its neighbours", "Give keys that belong together the same number of spaces."],
  BLOCK_AS_IMPLICIT_KEY: ["there is a second colon in the line", "Put the text after the first colon in quotes."],
  MULTILINE_IMPLICIT_KEY: ["a colon is missing after the key", "Write key: value, with a colon and a space after the key."],
  MULTIPLE_DOCS: ["a second document begins here", "Remove the line ---; a config is one document."],
  BAD_SCALAR_START: ["a text cannot begin with this sign", "Put the text in quotes."],
  BAD_DQ_ESCAPE: ["a backslash in double quotes means something else", "Write two backslashes, or use single quotes."],
  BLOCK_IN_FLOW: ["between brackets everything is written with brackets", "Write { key: value } or [a, b] here."],
  UNEXPECTED_TOKEN: ["this does not belong here", "Put texts with signs such as : # { [ in quotes, and nothing after them."],
  TAG_RESOLVE_FAILED: ["tags, such as !name, are not supported", "Remove the tag, or put the text in quotes."],
  BAD_ALIAS: ["an alias, *name, must name an anchor", 'Put the text in quotes: "*".'],
};
const NO_QUOTE = ["a quote is opened here and never closed", "Close it where the text ends."] as const;
const NO_BRACKET = [
  "a bracket is not closed, or a comma is missing",
  "Close every { and [, and write commas between what is in them.",
] as const;
const ANYTHING = ["this cannot be read", "Correct the line; texts with signs such as : # { [ need quotes."] as const;

/** One for each line: what follows from a mistake is none. */
export function yamlMistakes(document: Document.Parsed, lineOf: (offset: number) => number): YamlMistake[] {
  const told = new Set<number>();
  return [...document.errors, ...document.warnings].flatMap((error) => {
    const line = lineOf(error.pos[0]);
    if (told.has(line)) return [];
    told.add(line);
    const quote = error.code === "MISSING_CHAR" && error.message.endsWith("quote") ? openQuote(document) : undefined;
    const [message, fix] = quote === undefined ? inWords(error) : NO_QUOTE;
    return [{ offset: quote ?? error.pos[0], message: `not valid YAML: ${message}`, fix }];
  });
}

function inWords({ code, message }: YAMLError): readonly [message: string, fix: string] {
  return code === "MISSING_CHAR" || message.startsWith("Flow ") ? NO_BRACKET : (TOLD[code] ?? ANYTHING);
}

/** A text that is never closed goes to the end of what could be read: it is the last one. */
function openQuote(document: Document.Parsed): number | undefined {
  let last: number | undefined;
  visit(document, (_, node) => {
    if (isScalar(node) && node.type?.startsWith("QUOTE")) last = node.range?.[0];
  });
  return last;
}
