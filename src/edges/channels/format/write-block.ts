import type { Block, Run } from "./blocks.ts";
import type { Dialect, Style } from "./dialects.ts";

const STYLES: readonly (Style | "link")[] = ["link", "bold", "italic", "strike"];

/** One block in the platform's words. The quote around it is not its own: blocks that follow each other share one. */
export function writeBlock(dialect: Dialect, { kind, runs, language }: Block): string {
  if (kind === "code") return dialect.codeBlock(runs.map(({ text }) => text).join(""), language);
  return writeRuns(dialect, runs, "", "", []);
}

/** What spans most is put around the rest: marks never cross. */
function writeRuns(dialect: Dialect, runs: readonly Run[], before: string, after: string, worn: readonly (Style | "link")[]): string {
  let written = "";
  let previous = before;
  for (let at = 0; at < runs.length; ) {
    const run = runs[at] as Run;
    const [style, end] = widest(runs, at, worn);
    const group = runs.slice(at, end);
    const next = runs[end]?.text[0] ?? after;
    if (style === null) written += writeOne(dialect, run, { before: previous, after: next });
    else {
      const inside = writeRuns(dialect, group, previous, next, [...worn, style]);
      if (style !== "link") written += dialect.style(style, inside, { before: previous, after: next });
      else written += dialect.link(inside, run.link?.href ?? "", group.map(({ text }) => text).join(""));
    }
    previous = group.at(-1)?.text.at(-1) ?? previous;
    at = end;
  }
  return written;
}

function widest(runs: readonly Run[], at: number, worn: readonly (Style | "link")[]): [Style | "link" | null, number] {
  let found: [Style | "link" | null, number] = [null, at + 1];
  for (const style of STYLES) {
    const value = runs[at]?.[style];
    if (!value || worn.includes(style)) continue;
    let end = at + 1;
    while (runs[end]?.[style] === value) end++;
    if (found[0] === null || end > found[1]) found = [style, end];
  }
  return found;
}

function writeOne(dialect: Dialect, { text, code, raw }: Run, beside: { readonly before: string; readonly after: string }): string {
  if (raw) return text;
  return code ? dialect.code(text, beside) : dialect.words(text);
}
