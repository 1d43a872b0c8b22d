import { Buffer } from "node:buffer";
import type { Model, ModelMessage, ModelRequest, ToolOffer } from "../kernel/model.ts";
import { tokensOfBytes } from "../kernel/token-estimate.ts";
import { writtenOffer } from "../kernel/tool-offer.ts";

/** Where a model does not say how much it takes. */
const UNKNOWN_CONTEXT = 128_000;
const OUTPUT_RESERVE = 8_192;
const PER_MESSAGE = 6;
const PER_CALL = 10;
const PER_IMAGE = 1_200;

export function tokensOfText(text: string | null): number {
  return text === null ? 0 : tokensOfBytes(Buffer.byteLength(text));
}

export function tokensOfMessage(message: ModelMessage): number {
  if (message.role === "tool")
    return (
      PER_MESSAGE +
      message.results.reduce((sum, { text, images }) => sum + PER_CALL + tokensOfText(text) + (images?.length ?? 0) * PER_IMAGE, 0)
    );
  const words = PER_MESSAGE + tokensOfText(message.text);
  if (message.role === "user") return words + (message.images?.length ?? 0) * PER_IMAGE;
  return words + (message.calls ?? []).reduce((sum, { tool, args }) => sum + PER_CALL + tokensOfText(tool) + tokensOfText(args), 0);
}

export function tokensOfMessages(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + tokensOfMessage(message), 0);
}

export function tokensOfTools(tools: readonly ToolOffer[]): number {
  return tools.reduce((sum, tool) => sum + PER_CALL + tokensOfText(writtenOffer(tool)), 0);
}

export function tokensOfRequest({ system, recalled, tools, messages }: ModelRequest): number {
  return tokensOfText(system) + tokensOfText(recalled ?? null) + tokensOfTools(tools ?? []) + tokensOfMessages(messages);
}

/** How much a request to this model may be, so that there is room for the answer. */
export function roomOf({ contextTokens }: Pick<Model, "contextTokens">, maxOutputTokens: number | undefined): number {
  const context = contextTokens ?? UNKNOWN_CONTEXT;
  const reserve = Math.min(maxOutputTokens ?? OUTPUT_RESERVE, context / 4);
  // The estimate is off by some percent, more often to the low side.
  return Math.floor((context - reserve) * 0.9);
}
