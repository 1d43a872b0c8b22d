import { Failure } from "../../kernel/failure.ts";

const MAX_DEPTH = 100;
const PREVIEW_CHARACTERS = 2_000;

/** A value as it is stored: its text, and the bytes that count. */
export interface StoredText {
  readonly text: string;
  readonly size: number;
}

export function storedText(key: string, value: unknown): StoredText {
  refuseDepth(key, value);
  const text = JSON.stringify(value);
  if (text === undefined) throw new Failure("pool.invalid_value", `the value of "${key}" is not JSON`);
  // PostgreSQL and URLs know no half surrogate pairs, and JSON.stringify escapes them; NUL is escaped too.
  return { text, size: Buffer.byteLength(text) };
}

/** Walks level by level, so that depth costs no stack. */
function refuseDepth(key: string, value: unknown): void {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new Failure("pool.invalid_value", `the value of "${key}" is nested deeper than ${MAX_DEPTH} levels`);
    const next: unknown[] = [];
    for (const item of level) {
      if (item === null || typeof item !== "object") continue;
      for (const inner of Array.isArray(item) ? item : Object.values(item))
        if (inner !== null && typeof inner === "object") next.push(inner);
    }
    level = next;
  }
}

/** What stands for a value that was spilled. */
export function previewOf(stored: StoredText, blob: string): { readonly preview: string; readonly size: number; readonly blob: string } {
  return { preview: stored.text.slice(0, PREVIEW_CHARACTERS).toWellFormed(), size: stored.size, blob };
}
