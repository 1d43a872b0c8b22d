import { sha256 } from "./canonical-json.ts";

/** Where a conversation takes place, as far as it decides about files and memory. */
export interface Place {
  readonly platform: string;
  readonly account: string;
  readonly chat: string;
  readonly topic: string | null;
}

const MAX_PART = 56;

/**
 * The folder of a chat, or of a topic in it. Two places never share one, not even where file names ignore case: everything but lowercase
 * letters, digits, _ and - is written as ~ and two hex digits per byte, and `+` stands between parts only. What would be too long
 * ends in `~~` and a hash.
 */
export function placeFolder({ platform, account, chat, topic }: Place, scope: "chat" | "topic"): string {
  const parts = [platform, account, chat, ...(scope === "topic" && topic !== null ? [topic] : [])];
  return parts.map(shortName).join("+");
}

/** One part of it. Never empty for a text that is not, and never longer than a key can bear. */
export function shortName(part: string): string {
  const written = Array.from(Buffer.from(part, "utf8"), (byte) => {
    const letter = String.fromCharCode(byte);
    return /[a-z0-9_-]/.test(letter) ? letter : `~${byte.toString(16).padStart(2, "0")}`;
  }).join("");
  // Half a character has no bytes of its own in UTF-8; the hash sees it.
  if (written.length <= MAX_PART && part.isWellFormed()) return written;
  return `${written.slice(0, 16)}~~${sha256(Buffer.from(part, "utf16le")).slice(0, 32)}`;
}
