import { Failure } from "../../kernel/failure.ts";
import type { Model, ModelChunk, ModelMessage, ModelRequest, Models, ToolOffer } from "../../kernel/model.ts";
import type { Redaction } from "../../kernel/redact.ts";

/** Every model, with no secret in what it is asked and none in what it answers: whatever calls a model calls it through this. */
export function redactedModels(models: Models, redaction: Redaction): Models {
  const clean = new CleanParts(redaction);
  return {
    resolve: (names) => {
      const model = models.resolve(names);
      return { ...model, stream: (request, signal) => redacted(model, request, signal, redaction, clean) };
    },
    priceOf: (name) => models.priceOf?.(name) ?? null,
  };
}

async function* redacted(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  redaction: Redaction,
  clean: CleanParts,
): AsyncGenerator<ModelChunk, void, void> {
  let ready: ModelChunk[] = [];
  const held = () => redaction.stream((text) => ready.push({ kind: "text", text }));
  let pieces = held();
  try {
    for await (const chunk of model.stream(redactedRequest(request, redaction, clean), signal)) {
      switch (chunk.kind) {
        case "text":
          pieces.push(chunk.text);
          yield* ready.splice(0);
          break;
        case "call":
          yield { kind: "call", call: { ...chunk.call, tool: redaction.text(chunk.call.tool), args: redaction.text(chunk.call.args) } };
          break;
        case "restart":
          // What is held back belongs to what is void.
          [pieces, ready] = [held(), []];
          yield { kind: "restart", because: redaction.text(chunk.because) };
          break;
        case "usage":
          // Nothing is said after it: what may have begun a secret did not go on.
          pieces.end();
          yield* ready.splice(0);
          pieces = held();
          yield chunk;
          break;
        // Signed by its provider, who wants it back as it was; nobody else reads it.
        case "opaque":
          yield chunk;
      }
    }
  } catch (error) {
    // Providers like to quote the key they refuse.
    throw inOtherWords(error, redaction);
  }
  pieces.end();
  yield* ready;
}

function redactedRequest(request: ModelRequest, redaction: Redaction, clean: CleanParts): ModelRequest {
  const { messages, tools, ...told } = request;
  const offers = tools === undefined ? {} : { tools: tools.map((tool) => clean.offer(tool)) };
  return { ...redaction.value(told), ...offers, messages: messages.map((message) => clean.message(message)) };
}

/** The same offers come with every request, and most of what was said before: each is looked through once, until there are more secrets. */
class CleanParts {
  readonly #redaction: Redaction;
  #known = new WeakMap<object, object>();
  #secrets = 0;

  constructor(redaction: Redaction) {
    this.#redaction = redaction;
  }

  /** Servers of agents may have put a secret into their words. */
  offer(offer: ToolOffer): ToolOffer {
    return this.#once(offer, (given) => this.#redaction.value({ ...given }));
  }

  message(message: ModelMessage): ModelMessage {
    return this.#once(message, (given) => redactedMessage(given, this.#redaction));
  }

  #once<Part extends object>(part: Part, clean: (part: Part) => Part): Part {
    if (this.#secrets !== this.#redaction.changes) {
      this.#secrets = this.#redaction.changes;
      this.#known = new WeakMap();
    }
    const known = this.#known.get(part) as Part | undefined;
    if (known) return known;
    const made = clean(part);
    this.#known.set(part, made);
    return made;
  }
}

/** Images and what a provider has signed stay as they are. */
function redactedMessage(message: ModelMessage, redaction: Redaction): ModelMessage {
  switch (message.role) {
    case "user":
      return { ...message, text: redaction.text(message.text) };
    case "assistant": {
      const calls = message.calls === undefined ? {} : { calls: redaction.value(message.calls) };
      return { ...message, text: redaction.text(message.text), ...calls };
    }
    case "tool":
      return { ...message, results: message.results.map((result) => ({ ...result, text: redaction.text(result.text) })) };
  }
}

function inOtherWords(error: unknown, redaction: Redaction): unknown {
  if (!(error instanceof Error)) return error;
  const message = redaction.text(error.message);
  if (message === error.message) return error;
  if (error instanceof Failure) return new Failure(error.code, message, { details: redaction.value(error.details), hint: error.hint });
  return new Error(message);
}
