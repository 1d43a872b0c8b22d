import { messageOf } from "../../kernel/failure.ts";
import type { Image } from "../../kernel/model.ts";
import type { Redaction } from "../../kernel/redact.ts";
import type { CallContext } from "./tool.ts";

/** Keeps a text where the agent can read it in parts. Answers how to, in words; null: it cannot be kept. */
export type Spill = (context: CallContext, text: string) => Promise<string | null>;

/** What a model is shown of one call. */
export const MAX_OUTPUT_CHARACTERS = 30_000;
const HEAD = 20_000;
const TAIL = 8_000;

/** The output as the model reads it: without secrets, and no longer than it can bear; what is too long is kept elsewhere. */
export async function shownOutput(output: unknown, redaction: Redaction, spill: (text: string) => Promise<string | null>): Promise<string> {
  const text = redaction.text(written(output)).replaceAll("\0", "").toWellFormed();
  if (text.length <= MAX_OUTPUT_CHARACTERS) return text;
  const where = await spill(text);
  const left = text.length - HEAD - TAIL;
  const note = `[… ${left} characters are left out${where === null ? "" : `; ${where}`} …]`;
  return `${text.slice(0, HEAD).toWellFormed()}\n${note}\n${text.slice(-TAIL).toWellFormed()}`;
}

/** The call has been made: what cannot be written as JSON must not make it look as if it had not. */
function written(output: unknown): string {
  if (typeof output === "string") return output;
  try {
    return JSON.stringify(output, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value), 1) ?? "";
  } catch (error) {
    return `[what it answered cannot be shown: ${messageOf(error).split("\n", 1)[0]}]`;
  }
}

/** What a model is shown of one call in pictures, in characters of base64. */
const MAX_IMAGES = 10;
const MAX_IMAGE_CHARACTERS = 8 * 1024 * 1024;

/** The first ones that are not too large, one by one and together. */
export function bearableImages(images: readonly Image[]): Image[] {
  let left = MAX_IMAGE_CHARACTERS;
  return images.slice(0, MAX_IMAGES).filter(({ data }) => {
    left -= data.length;
    return left >= 0;
  });
}
