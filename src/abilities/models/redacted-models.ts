import { Failure } from "../../kernel/failure.ts";
import type { Model, ModelChunk, ModelMessage, ModelRequest, Models } from "../../kernel/model.ts";
import type { Redaction } from "../../kernel/redact.ts";

/** Every model, with no secret in what it is asked and none in what it answers: whatever calls a model calls it through this. */
export function redactedModels(models: Models, redaction: Redaction): Models {
  return {
    resolve: (names) => {
      const model = models.resolve(names);
      return { ...model, stream: (request, signal) => redacted(model, request, signal, redaction) };
    },
    priceOf: (name) => models.priceOf?.(name) ?? null,
  };
}

async function* redacted(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  redaction: Redaction,
): AsyncGenerator<ModelChunk, void, void> {
  let ready: string[] = [];
  const held = () => redaction.stream((text) => ready.push(text));
  let pieces = held();
  const flush = function* (): Generator<ModelChunk> {
    for (const text of ready) yield { kind: "text", text };
    ready = [];
  };
  try {
    for await (const chunk of model.stream(redactedRequest(request, redaction), signal)) {
      switch (chunk.kind) {
        case "text":
          pieces.push(chunk.text);
          yield* flush();
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
          yield* flush();
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
  yield* flush();
}

function redactedRequest(request: ModelRequest, redaction: Redaction): ModelRequest {
  const { messages, ...told } = request;
  return { ...redaction.value(told), messages: messages.map((message) => redactedMessage(message, redaction)) };
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
