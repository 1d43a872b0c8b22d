import { type Model, type ModelPrice, type ModelRequest, type ModelUsage, wordsOf } from "../../kernel/model.ts";

/** What a call may come to. */
export interface Estimate {
  readonly model: string;
  readonly inputTokens: number;
  /** Of the answer. */
  readonly maxOutputTokens: number;
  /** Null: not known. */
  readonly price: ModelPrice | null;
}

/** Of UTF-8: a token of English is four or more, one of Chinese three. Rather too many tokens than too few. */
const BYTES_PER_TOKEN = 3.5;
const TOKENS_PER_MESSAGE = 8;
/** What large images come to with most providers. */
const TOKENS_PER_IMAGE = 1_600;
/** Of an answer where nobody has said how long it may be. */
const USUAL_OUTPUT_TOKENS = 4_096;
const FREE: ModelPrice = { input: 0, output: 0 };

/** Without asking anybody. A model whose answers are made by rules costs nothing, unless it says what it costs. */
export function estimateOf(model: Model, request: ModelRequest): Estimate {
  const words = [request.system ?? "", request.recalled ?? "", request.tools ? JSON.stringify(request.tools) : ""];
  let images = 0;
  for (const message of request.messages) {
    words.push(wordsOf(message));
    if (message.role === "user") images += message.images?.length ?? 0;
    if (message.role === "tool") for (const result of message.results) images += result.images?.length ?? 0;
    if (message.role === "assistant") for (const call of message.calls ?? []) words.push(call.tool, call.args);
  }
  const bytes = words.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return {
    model: model.name,
    inputTokens: Math.ceil(bytes / BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE * request.messages.length + TOKENS_PER_IMAGE * images,
    maxOutputTokens: request.settings?.maxOutputTokens ?? USUAL_OUTPUT_TOKENS,
    price: model.price ?? (model.scripted ? FREE : null),
  };
}

/** In millionths of a dollar: dollars for a million tokens are millionths for one. Whole, and never less than it is. */
export function costOf(usage: ModelUsage, price: ModelPrice): number {
  const cached = Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens);
  const cost = (usage.inputTokens - cached) * price.input + cached * (price.cachedInput ?? price.input) + usage.outputTokens * price.output;
  // Less than a thousandth of a millionth is not a cost but how numbers are stored.
  return Math.ceil(cost - 1e-3);
}
