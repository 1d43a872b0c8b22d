/** Longer than this, a text is shown as it was written: reading its form would take too long. */
const MAX_LENGTH = 24_000;
const MAX_LINES = 2_000;
/** Reading it takes time with the square of these in one paragraph. */
const MAX_MARKS = 4_000;
const MAX_MARKS_AT_ONCE = 500;
/** Every level of a quote or a list is read again by the next. */
const MAX_LEVELS = 4_000;
const DEEP_LINE = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){9}/m;
const FAR_IN = /^[ \t]{64,}(?:[-*+]|\d{1,9}[.)])[ \t]/m;
/** Every row of a table is filled up to as many cells as its head has. */
const MAX_CELLS = 20_000;

/** Whether the form of this text costs more to read than a form is worth. By its looks alone, so that every node says the same. */
export function isHostile(text: string): boolean {
  if (text.length > MAX_LENGTH || DEEP_LINE.test(text) || FAR_IN.test(text)) return true;
  let marks = 0;
  for (const paragraph of text.split(/\n[ \t]*\n/)) {
    const here = countOf(paragraph, /[*_~]+/g);
    marks += here;
    if (here > MAX_MARKS_AT_ONCE || marks > MAX_MARKS) return true;
  }
  if (countOf(text, /[[<`]/g) > MAX_MARKS || countOf(text, /\n/g) > MAX_LINES) return true;
  return cellsOf(text) > MAX_CELLS || levelsOf(text) > MAX_LEVELS;
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

function levelsOf(text: string): number {
  let levels = 0;
  for (const { 0: begun } of text.matchAll(/^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]))+/gm)) levels += countOf(begun, />|[-*+.)][ \t]/g);
  return levels;
}

function cellsOf(text: string): number {
  const lines = text.split("\n");
  let widest = 0;
  for (const line of lines) if (line.includes("-") && /^[\s|:-]+$/.test(line)) widest = Math.max(widest, line.split("|").length);
  return widest * lines.length;
}
