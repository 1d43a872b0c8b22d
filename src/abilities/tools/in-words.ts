import type { Failure } from "../../kernel/failure.ts";

/** A refusal as a model reads it: what is wrong, and what to do about it. */
export function inWords({ code, message, hint }: Pick<Failure, "code" | "message" | "hint">): string {
  if (hint === "") return `${code}: ${message}`;
  return `${code}: ${message}${/[.!?…]$/.test(message) ? "" : "."} ${hint}`;
}
