import type { Shown } from "../platforms/stand-in.ts";

export interface Said {
  readonly word: string;
  readonly chat: string;
}

/** What the ledger says, by the words of the messages; as often as it says so. */
export interface Books {
  readonly refused: readonly string[];
  /** Nobody knew whether a part had arrived. */
  readonly unclear: readonly string[];
  readonly abandoned: readonly string[];
  /** Every attempt to answer it was killed. */
  readonly failed: readonly string[];
}

/** Of a long answer: more than one message can hold. */
const LINES = 120;

export function wordsIn(text: string): string[] {
  return [...new Set(text.match(/\bw\d+(long)?\b/g) ?? [])];
}

/** The answer to a message. */
export function linesOf(word: string): string[] {
  if (!word.endsWith("long")) return [`${word} is heard.`];
  return Array.from({ length: LINES }, (_, index) => `${word} is heard, line ${index} of an answer that goes on.`);
}

/** Holds what people see at the platform against what was said there, and against what the books say of it. */
export function checkChannels(
  said: readonly Said[],
  shown: readonly Shown[],
  books: Books,
): { readonly problems: string[]; readonly counts: Record<string, number>; readonly missing: number } {
  const problems: string[] = [];
  const counts = {
    answered: 0,
    "refused, with a reason": 0,
    "shown twice, as recorded": 0,
    "given up, as recorded": 0,
    "failed, and told so": 0,
  };
  let missing = 0;
  const refused = new Set(books.refused);
  const abandoned = new Set(books.abandoned);
  const failed = new Set(books.failed);
  const excuses = Map.groupBy(
    shown.filter(({ text }) => text.startsWith("I could not answer this")),
    ({ chat }) => chat,
  );
  const unclear = Map.groupBy(books.unclear, (word) => word);
  const lines = shown.flatMap(({ chat, text }) => text.split("\n").map((line) => ({ chat, line: line.trim() })));
  const byLine = Map.groupBy(lines, ({ line }) => line);
  for (const { word, chat } of said) {
    const times = linesOf(word).map((line) => byLine.get(line) ?? []);
    const doubts = unclear.get(word)?.length ?? 0;
    if (times.some((seen) => seen.some((one) => one.chat !== chat))) problems.push(`${word} was answered in another chat`);
    const most = Math.max(...times.map(({ length }) => length));
    if (refused.has(word)) {
      counts["refused, with a reason"]++;
      if (most > 0) problems.push(`${word} was refused, and answered`);
      continue;
    }
    if (times.some(({ length }) => length === 0)) {
      if (abandoned.has(word)) counts["given up, as recorded"]++;
      else if (failed.has(word) && excuses.get(chat)?.shift()) counts["failed, and told so"]++;
      else {
        missing++;
        problems.push(`${word} in chat ${chat} was not answered${most > 0 ? " whole" : ""}`);
      }
      continue;
    }
    counts.answered++;
    if (most - 1 > doubts) problems.push(`${word} was shown ${most} times, and the books know of ${doubts} doubts`);
    if (most > 1) counts["shown twice, as recorded"]++;
  }
  for (const [chat, theirs] of Map.groupBy(said, (one) => one.chat)) {
    const wanted = theirs.flatMap(({ word }) => linesOf(word)).filter((line) => byLine.has(line));
    const seen = [...new Set(lines.filter((one) => one.chat === chat && wordsIn(one.line).length > 0).map(({ line }) => line))];
    const at = seen.findIndex((line, index) => line !== wanted[index]);
    if (at >= 0 && missing === 0) problems.push(`in chat ${chat}, "${seen[at]}" came where "${wanted[at]}" should have been`);
  }
  return { problems, counts, missing };
}
