import { type Block, slice, textOf } from "./blocks.ts";

/** The first fits; nothing of the words is lost but blanks between them. `head` is null where nothing that makes sense would fit. */
export interface CutBlock {
  readonly head: Block | null;
  readonly tail: Block | null;
}

/** Not far from the end: a message of three words before a long one helps nobody. */
const EARLIEST = 0.3;

/** Letters that are made of many are looked at so far. */
const LETTER = 64;

/**
 * Cuts a block that is too long for the room: after a line, a sentence, a word; within a word where nothing else helps, and never within
 * what the reader sees as one letter, in a link or in a piece of code that would fit elsewhere. `isAll`: there will never be more room.
 */
export function cutBlock(block: Block, room: number, isAll: boolean, costOf: (block: Block) => number): CutBlock {
  const most = textOf({ runs: slice(block.runs, 0, room + LETTER) });
  const end = longestFitting(block, Math.min(room, most.length), room, costOf);
  const at = block.kind === "code" ? codeCut(most, end) : wordCut(block, most, end, isAll);
  if (at === 0) return { head: null, tail: block };
  const head = { ...block, runs: trimmedEnd(block, at) };
  const skip = block.kind === "code" ? (most[at] === "\n" ? 1 : 0) : blanksAt(block, at);
  const total = block.runs.reduce((sum, { text }) => sum + text.length, 0);
  const tail = at + skip >= total ? null : { ...block, gap: 1 as const, runs: slice(block.runs, at + skip, total) };
  return { head: head.runs.length > 0 ? head : null, tail };
}

function longestFitting(block: Block, from: number, room: number, costOf: (block: Block) => number): number {
  let end = from;
  while (end > 1) {
    const cost = costOf({ ...block, runs: slice(block.runs, 0, end) });
    if (cost <= room) return end;
    end = Math.max(1, Math.min(end - 1, Math.floor((end * room) / cost)));
  }
  return 1;
}

function codeCut(text: string, end: number): number {
  for (const [mark, earliest] of [
    ["\n\n", 0.5],
    ["\n", 0],
  ] as const) {
    const at = text.lastIndexOf(mark, end);
    if (at > end * earliest && text.slice(0, at).trim() !== "") return at;
  }
  return betweenLetters(text, end);
}

function wordCut(block: Block, text: string, end: number, isAll: boolean): number {
  const candidates = [
    text.lastIndexOf("\n\n", end),
    text.lastIndexOf("\n", end),
    lastMatch(text, /[.!?…][\p{Pe}\p{Pf}"']*(?=\s)|[。！？][\p{Pe}\p{Pf}]*/gu, end),
    text.slice(0, end + 1).search(/\s\S*$/),
  ];
  for (const [index, candidate] of candidates.entries()) {
    const at = outsideOf(block, candidate);
    if (at > (index === 3 ? 0 : end * EARLIEST) && text.slice(firstOwn(block), at).trim() !== "") return at;
  }
  const at = outsideOf(block, betweenLetters(text, end));
  if (at > firstOwn(block) && text.slice(firstOwn(block), at).trim() !== "") return at;
  return isAll ? betweenLetters(text, end) : 0;
}

/** Behind a bullet that we have set. */
function firstOwn({ runs }: Block): number {
  return runs[0]?.raw && runs.length > 1 ? runs[0].text.length : 0;
}

function lastMatch(text: string, pattern: RegExp, end: number): number {
  let last = 0;
  for (const { index, 0: found } of text.slice(0, end + 1).matchAll(pattern)) if (index + found.length <= end) last = index + found.length;
  return last;
}

/** Before the link, the code or the mark in whose midst it falls. */
function outsideOf({ runs }: Block, at: number): number {
  let start = 0;
  let whole = 0;
  for (const [index, run] of runs.entries()) {
    const previous = runs[index - 1];
    if (!(run.link && run.link === previous?.link)) whole = start;
    const end = start + run.text.length;
    const isInLink = run.link !== undefined && at === end && runs[index + 1]?.link === run.link;
    if (at > start && at < end && (run.link || run.code || run.raw || run.whole)) return whole;
    if (isInLink) return whole;
    start = end;
    if (start >= at) break;
  }
  return at;
}

const letters = new Intl.Segmenter("en", { granularity: "grapheme" });

/** The text begins with a whole letter: so is counted from there. One that is too long by itself is cut where a code point ends. */
function betweenLetters(text: string, end: number): number {
  if (end >= text.length) return end;
  const start = letters.segment(text).containing(end)?.index ?? end;
  if (start > 0) return start;
  return /[\ud800-\udbff]/.test(text[end - 1] ?? "") ? Math.max(end - 1, 0) || 2 : end;
}

function trimmedEnd(block: Block, at: number): Block["runs"] {
  const runs = slice(block.runs, 0, at);
  if (block.kind === "code") return runs;
  const kept = textOf({ runs }).trimEnd().length;
  return slice(runs, 0, kept);
}

function blanksAt({ runs }: Block, at: number): number {
  let start = 0;
  let blanks = 0;
  for (const { text } of runs) {
    const from = Math.max(0, at - start);
    start += text.length;
    if (from >= text.length) continue;
    const rest = text.slice(from);
    const own = rest.length - rest.trimStart().length;
    blanks += own;
    if (own < rest.length) break;
  }
  return blanks;
}
