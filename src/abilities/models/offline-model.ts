import { type Model, type ModelChunk, type ModelRequest, wordsOf } from "../../kernel/model.ts";
import type { Provider } from "./model-registry.ts";

const SCRIPTED = "I am Guildhall's offline demo: my answers are scripted, no language model is behind them.";
const QUOTED_CHARACTERS = 200;
/** About what a tokenizer gives for English: good enough for a meter that costs nothing. */
const CHARACTERS_PER_TOKEN = 4;

const RULES: readonly (readonly [RegExp, string])[] = [
  [
    /^\s*(hi|hello|hey|hallo|good (morning|afternoon|evening))\b/i,
    `Hello! ${SCRIPTED} Say something and I will answer as well as a script can.`,
  ],
  [/\b(who|what) are you\b|\byour name\b/i, `${SCRIPTED} Name a model in guildhall.yaml to talk to a real one.`],
  [/^\s*help\b|\bwhat can you do\b/i, `${SCRIPTED} I greet, I repeat what I hear, and I show that messages arrive and replies come back.`],
  [/\b(thanks|thank you)\b/i, "You are welcome."],
  [/^\s*(bye|goodbye|see you)\b/i, "Goodbye. What we said is kept in this conversation."],
];

/** Answers by rules: the same conversation always gets the same answer, without a key and without a network. */
const demo: Model = {
  name: "offline/demo",
  scripted: true,
  async *stream(request, signal): AsyncGenerator<ModelChunk, void, void> {
    const answer = answerTo(request);
    for (const text of answer.match(/\S+\s*/g) ?? []) {
      signal.throwIfAborted();
      yield { kind: "text", text };
    }
    const read = request.messages.reduce((sum, message) => sum + wordsOf(message).length, request.system?.length ?? 0);
    yield { kind: "usage", usage: { inputTokens: tokens(read), outputTokens: tokens(answer.length) } };
  },
};

export const offlineProvider: Provider = { name: "offline", model: (name) => (name === "demo" ? demo : undefined), models: () => ["demo"] };

function answerTo({ messages }: ModelRequest): string {
  const said = wordsOf(messages.at(-1));
  const rule = RULES.find(([pattern]) => pattern.test(said));
  if (rule) return rule[1];
  const asked = messages.filter((message) => message.role === "user").length;
  return `You said: "${quoted(said)}". That was message ${asked} of our conversation. (Scripted answer of the offline demo.)`;
}

function quoted(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= QUOTED_CHARACTERS ? line : `${line.slice(0, QUOTED_CHARACTERS).toWellFormed()}…`;
}

function tokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}
