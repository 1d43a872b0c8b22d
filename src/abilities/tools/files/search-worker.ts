/**
 * Looks for a pattern in texts, in a thread of its own: a pattern can be such that looking for it never ends, and then the thread is ended.
 */
import { matchesGlob } from "node:path/posix";
import { parentPort } from "node:worker_threads";
import type { Found, SearchOrder } from "./search-aside.ts";

const MAX_LINE = 2_000;
const SHOWN_LINE = 300;

parentPort?.on("message", (order: SearchOrder) => {
  parentPort?.postMessage(order.kind === "names" ? named(order) : found(order));
});

function named({ pattern, files }: SearchOrder): Found[] {
  // Without a slash it is about the last name alone, wherever the file lies.
  const isDeep = pattern.includes("/");
  return files
    .filter(({ path }) => matchesGlob(isDeep ? path : (path.split("/").at(-1) as string), pattern))
    .map(({ path }) => ({ path, line: 0, text: "" }));
}

function found({ pattern, files, limit }: SearchOrder): Found[] {
  const expression = new RegExp(pattern, "u");
  const hits: Found[] = [];
  for (const { path, text } of files)
    for (const [index, line] of text.split("\n").entries()) {
      const hit = expression.exec(line.slice(0, MAX_LINE));
      if (!hit) continue;
      const from = Math.max(0, Math.min(hit.index - 100, line.length - SHOWN_LINE));
      hits.push({ path, line: index + 1, text: `${from > 0 ? "…" : ""}${line.slice(from, from + SHOWN_LINE).trimEnd()}` });
      if (hits.length >= limit) return hits;
    }
  return hits;
}
