import type { Tokens } from "marked";
import type { Block, Habits, Run } from "./blocks.ts";
import { readInline } from "./read-inline.ts";

/** Wider ones are broken by a telephone, and nobody can read them then. */
const MAX_WIDTH = 72;

/** No chat has tables: a narrow one is set in columns of even width, a wide one row by row. */
export function readTable({ header, rows, align }: Tokens.Table, habits: Habits): Block[] {
  const cell = ({ tokens }: Tokens.TableCell): Run[] => readInline(tokens, habits);
  const words = (runs: readonly Run[]): string =>
    runs
      .map(({ text, link }, index) => (link && link.href !== text && runs[index + 1]?.link !== link ? `${text} (${link.href})` : text))
      .join("")
      .replaceAll("\n", " ");
  const lines = [header, ...rows].map((row) => row.map(cell));
  const told = lines.map((line) => line.map(words));
  const widths = header.map((_, column) => Math.max(...told.map((line) => widthOf(line[column] ?? ""))));
  if (widths.reduce((sum, width) => sum + width + 2, -2) <= MAX_WIDTH) {
    const set = (line: readonly string[]): string =>
      line.map((text, column) => padded(text, widths[column] ?? 0, align[column])).join("  ");
    const [head = [], ...body] = told;
    const drawn = [set(head), widths.map((width) => "-".repeat(width)).join("  "), ...body.map(set)].map((line) => line.trimEnd());
    return [{ kind: "code", runs: [{ text: drawn.join("\n") }], gap: 2, isQuote: false, language: "" }];
  }
  const [heads = [], ...body] = lines;
  const listed = body.length > 0 ? body : [heads];
  return listed.map((line, index) => ({
    kind: "text",
    runs: line.flatMap((runs, column): Run[] => {
      const head = body.length > 0 ? (told[0]?.[column] ?? "") : "";
      const before = column === 0 ? { text: habits.bullet, raw: true } : { text: "\n  ", raw: true };
      return [before, ...(head === "" ? [] : [{ text: `${head}:`, bold: true }, { text: " " }]), ...runs];
    }),
    gap: index === 0 ? 2 : 1,
    isQuote: false,
    language: "",
  }));
}

/** Letters of the far east are two wide. */
function widthOf(text: string): number {
  let width = 0;
  for (const letter of text)
    width += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\p{Extended_Pictographic}]/u.test(letter)
      ? 2
      : 1;
  return width;
}

function padded(text: string, width: number, align: Tokens.Table["align"][number] | undefined): string {
  const blank = " ".repeat(Math.max(0, width - widthOf(text)));
  return align === "right" ? blank + text : text + blank;
}
