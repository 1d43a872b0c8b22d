import { type Model, type ModelChunk, type ModelRequest, wordsOf } from "../../kernel/model.ts";
import type { Provider } from "./model-registry.ts";
import { type OfflineAnswer, offlineAnswer } from "./offline/answer.ts";
import { builtInPrice } from "./prices.ts";

/** About what a tokenizer gives for English: good enough for a meter that costs nothing. */
const CHARACTERS_PER_TOKEN = 4;
const CONTEXT_TOKENS = 100_000;

/** Answers by rules: the same conversation always gets the same answer, without a key and without a network. */
const demo: Model = {
  name: "offline/demo",
  scripted: true,
  contextTokens: CONTEXT_TOKENS,
  seesImages: false,
  price: builtInPrice("offline", "demo"),
  async *stream(request, signal): AsyncGenerator<ModelChunk, void, void> {
    const { answer, cut } = limited(offlineAnswer(request), request);
    for (const text of answer.text.match(/\S+\s*/g) ?? []) {
      signal.throwIfAborted();
      yield { kind: "text", text };
    }
    signal.throwIfAborted();
    const round = request.messages.filter(({ role }) => role === "assistant").length;
    for (const [index, call] of answer.calls.entries()) yield { kind: "call", call: { id: `call_${round}_${index}`, ...call } };
    const said = answer.text.length + answer.calls.reduce((sum, { args }) => sum + args.length, 0);
    const usage = { inputTokens: tokens(charactersOf(request)), outputTokens: tokens(said) };
    yield { kind: "usage", usage, ...(cut ? { cut } : {}) };
  },
};

export const offlineProvider: Provider = {
  name: "offline",
  model: (name) => (name === "demo" ? demo : undefined),
  models: () => ["demo"],
  priceOf: (name) => builtInPrice("offline", name),
};

/** As real ones: no further than a stop word, and no longer than allowed. */
function limited(answer: OfflineAnswer, { settings = {} }: ModelRequest): { readonly answer: OfflineAnswer; readonly cut: boolean } {
  const stops = (settings.stop ?? []).map((stop) => answer.text.indexOf(stop)).filter((at) => at >= 0);
  const text = answer.text.slice(0, Math.min(answer.text.length, ...stops));
  const most = (settings.maxOutputTokens ?? Number.POSITIVE_INFINITY) * CHARACTERS_PER_TOKEN;
  if (text.length <= most) return { answer: { ...answer, text }, cut: false };
  return { answer: { text: text.slice(0, most).toWellFormed(), calls: [] }, cut: true };
}

function charactersOf({ system, recalled, messages }: ModelRequest): number {
  return messages.reduce((sum, message) => sum + wordsOf(message).length, (system?.length ?? 0) + (recalled?.length ?? 0));
}

function tokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}
