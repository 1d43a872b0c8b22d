import type { Run } from "../../../contract/wire.ts";
import type { ModelCall } from "../../../kernel/model.ts";

type Usage = NonNullable<Run["usage"]>;

/** A finished run as a chat completion. */
export function chatCompletion(run: Run, cut: boolean): unknown {
  const { text, calls = [] } = run.reply ?? { text: "" };
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    annotations: [],
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(callOf) }),
  };
  return {
    ...common(run),
    object: "chat.completion",
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(run, cut) }],
    ...(run.usage ? { usage: usageOf(run.usage) } : {}),
  };
}

/** The pieces of the same, as they are sent one after another. With `includeUsage` each of them has the field, as OpenAI's have. */
export class ChatChunks {
  readonly #run: Run;
  readonly #includeUsage: boolean;

  constructor(run: Run, includeUsage: boolean) {
    this.#run = run;
    this.#includeUsage = includeUsage;
  }

  begin(): unknown {
    return this.#chunk({ role: "assistant", content: "", refusal: null }, null);
  }

  text(content: string): unknown {
    return this.#chunk({ content }, null);
  }

  /** What comes after the text: calls, why it ended, and what it took. */
  *end(run: Run, cut: boolean): Generator<unknown> {
    for (const [index, call] of (run.reply?.calls ?? []).entries()) yield this.#chunk({ tool_calls: [{ index, ...callOf(call) }] }, null);
    yield this.#chunk({}, finishOf(run, cut));
    if (this.#includeUsage) yield { ...this.#frame(), choices: [], usage: run.usage && usageOf(run.usage) };
  }

  #chunk(delta: unknown, finish: string | null): unknown {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return { ...this.#frame(), choices, ...(this.#includeUsage ? { usage: null } : {}) };
  }

  #frame(): object {
    return { ...common(this.#run), object: "chat.completion.chunk" };
  }
}

function common(run: Run): object {
  return { id: `chatcmpl-${run.id}`, created: Math.floor(run.createdAt / 1000), model: run.agent, system_fingerprint: null };
}

function callOf({ id, tool, args }: ModelCall): object {
  return { id, type: "function", function: { name: tool, arguments: args } };
}

function finishOf(run: Run, cut: boolean): string {
  if ((run.reply?.calls ?? []).length > 0) return "tool_calls";
  return cut ? "length" : "stop";
}

function usageOf({ inputTokens, outputTokens, cachedInputTokens = 0 }: Usage): unknown {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
  };
}
