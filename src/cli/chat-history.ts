import { appendFileSync, chmodSync, readFileSync, writeFileSync } from "node:fs";
import type { TypedBefore } from "./chat-lines.ts";

const KEPT_LINES = 500;
const LONGEST = 4_000;
const MAX_BYTES = 1_000_000;

/** What was typed in chats on this home: one JSON text per line, for this user's eyes only. Whatever is wrong with it, one can talk. */
export function chatHistory(file: string): TypedBefore {
  const lines = read(file);
  return {
    lines: lines.slice(-KEPT_LINES).reverse(),
    keep: (line) => {
      if (line.length > LONGEST) return;
      try {
        appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
      } catch {
        // A home that cannot be written has said so elsewhere.
      }
    },
  };
}

function read(file: string): string[] {
  try {
    const text = readFileSync(file, "utf8");
    const lines = text.split("\n").flatMap(lineIn);
    chmodSync(file, 0o600);
    if (lines.length <= 2 * KEPT_LINES && text.length <= MAX_BYTES) return lines;
    const kept = lines.slice(-KEPT_LINES);
    writeFileSync(file, kept.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
    return kept;
  } catch {
    return [];
  }
}

function lineIn(written: string): string[] {
  try {
    const line: unknown = JSON.parse(written);
    return typeof line === "string" && line !== "" && line.length <= LONGEST ? [line] : [];
  } catch {
    return [];
  }
}
