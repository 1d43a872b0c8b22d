import type { Part } from "../../../kernel/channel.ts";

/** How a platform wants its text, and how long a message may be in what it counts. */
export interface Form {
  readonly kind: "telegram" | "discord" | "slack" | "whatsapp" | "plain";
  readonly maxLength: number;
}

/** What an agent writes (Markdown), in the platform's form, cut into messages where it makes sense. */
export function partsFor(text: string, { maxLength }: Form): readonly Part[] {
  const parts: Part[] = [];
  for (let rest = text.trim(); rest !== ""; rest = rest.slice(maxLength)) {
    const piece = rest.slice(0, maxLength).toWellFormed();
    parts.push({ text: piece, plain: piece });
  }
  return parts;
}
