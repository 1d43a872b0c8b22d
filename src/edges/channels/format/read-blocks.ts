import { Lexer, type Token, type Tokens } from "marked";
import { type Block, type Habits, isVisible, type Run, slice, textOf } from "./blocks.ts";
import { isHostile } from "./hostile-text.ts";
import { readInline } from "./read-inline.ts";
import { readTable } from "./read-table.ts";

interface Inside {
  readonly indent: number;
  readonly isQuote: boolean;
  readonly habits: Habits;
}

/** What an agent has written (Markdown, as on GitHub). Whatever cannot be read is shown as it was written. */
export function readBlocks(text: string, habits: Habits): Block[] {
  const clean = text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: no platform shows them, and some refuse them
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, "")
    .trimEnd();
  if (isHostile(clean)) return asWritten(clean);
  try {
    return blocksOf(Lexer.lex(clean, { gfm: true }), { indent: 0, isQuote: false, habits }).filter((block) => isVisible(textOf(block)));
  } catch {
    return asWritten(clean);
  }
}

function asWritten(text: string): Block[] {
  return isVisible(text) ? [block([{ text: text.replace(/^\n+/, "") }], false, 2)] : [];
}

function block(runs: readonly Run[], isQuote: boolean, gap: 1 | 2, kind: Block["kind"] = "text"): Block {
  return { kind, runs, gap, isQuote, language: "" };
}

function blocksOf(tokens: readonly Token[], inside: Inside): Block[] {
  return tokens.flatMap((token) => readOne(token, inside));
}

function readOne(token: Token, inside: Inside): Block[] {
  const { indent, isQuote, habits } = inside;
  const margin: Run[] = indent > 0 ? [{ text: "  ".repeat(indent), raw: true }] : [];
  const paragraph = (runs: readonly Run[], gap: 1 | 2 = indent > 0 ? 1 : 2): Block => block([...margin, ...tidy(runs)], isQuote, gap);
  switch (token.type) {
    case "space":
    case "checkbox":
      return [];
    case "code":
      return [codeOf(token as Tokens.Code)];
    case "heading":
      return [headingOf(token as Tokens.Heading, inside)];
    case "hr":
      return [paragraph([{ text: "———", raw: true }])];
    case "blockquote":
      return blocksOf((token as Tokens.Blockquote).tokens, { ...inside, isQuote: true });
    case "list":
      return listOf(token as Tokens.List, inside);
    case "table":
      return readTable(token as Tokens.Table, habits).map((one) => ({ ...one, isQuote: isQuote && one.kind !== "code" }));
    case "paragraph":
    case "text": {
      const { tokens = [{ type: "text", raw: token.raw, text: token.raw }] } = token as Tokens.Paragraph;
      return [paragraph(readInline(tokens, habits))];
    }
    default:
      // Pages of others and lists of addresses: what they say is not hidden.
      return [paragraph([{ text: token.raw.trim() }])];
  }
}

function tidy(runs: readonly Run[]): Run[] {
  return slice(runs, 0, textOf({ runs }).trimEnd().length);
}

function codeOf({ text, lang }: Tokens.Code): Block {
  const language = (lang ?? "").match(/^[\w+#.-]{1,30}/)?.[0] ?? "";
  return { kind: "code", runs: [{ text: text.replace(/^\n+|\s+$/g, "") }], gap: 2, isQuote: false, language };
}

function headingOf({ tokens, depth }: Tokens.Heading, { isQuote, habits }: Inside): Block {
  const mark = habits.heading(depth);
  const runs = readInline(tokens, habits, mark === null ? { bold: true } : {}).map((run) => ({
    ...run,
    text: run.text.replaceAll("\n", " "),
  }));
  return block(mark === null ? runs : [{ text: mark, raw: true }, ...runs], isQuote, 2, "heading");
}

function listOf({ items, ordered, start, loose }: Tokens.List, inside: Inside): Block[] {
  const { indent, isQuote, habits } = inside;
  const first = typeof start === "number" ? start : 1;
  return items.flatMap((item, index) => {
    const bullet = ordered ? `${first + index}. ` : habits.bullet;
    const box = item.task ? (item.checked ? "☑ " : "☐ ") : "";
    const mark: Run = { text: `${"  ".repeat(indent)}${bullet}${box}`, raw: true };
    const gap = (index === 0 && indent === 0) || loose ? 2 : 1;
    const [head, ...rest] = blocksOf(item.tokens, { ...inside, indent: indent + 1 });
    const headed = head?.kind === "text" && !isItem(item.tokens[0]) ? head : undefined;
    const own = headed ? headed.runs.slice(1) : [];
    return [block([mark, ...own], isQuote, gap), ...(headed || !head ? rest : [head, ...rest])];
  });
}

function isItem(token: Token | undefined): boolean {
  return token?.type === "list" || token?.type === "blockquote" || token?.type === "table";
}
