import { Failure } from "../../kernel/failure.ts";
import type { Model, ModelChunk, ModelRequest, Models } from "../../kernel/model.ts";
import type { Redaction } from "../../kernel/redact.ts";

/** Every model, with no secret in what it is asked and none in what it answers: whatever calls a model calls it through this. */
export function redactedModels(models: Models, redaction: Redaction): Models {
  return {
    resolve: (name) => {
      const model = models.resolve(name);
      return { name: model.name, scripted: model.scripted, stream: (request, signal) => redacted(model, request, signal, redaction) };
    },
  };
}

async function* redacted(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  redaction: Redaction,
): AsyncGenerator<ModelChunk, void, void> {
  let ready: string[] = [];
  const pieces = redaction.stream((text) => ready.push(text));
  const flush = function* (): Generator<ModelChunk> {
    for (const text of ready) yield { kind: "text", text };
    ready = [];
  };
  try {
    for await (const chunk of model.stream(redaction.value(request), signal)) {
      if (chunk.kind === "text") pieces.push(chunk.text);
      yield* flush();
      if (chunk.kind !== "text") yield chunk;
    }
  } catch (error) {
    // Providers like to quote the key they refuse.
    throw inOtherWords(error, redaction);
  }
  pieces.end();
  yield* flush();
}

function inOtherWords(error: unknown, redaction: Redaction): unknown {
  if (!(error instanceof Error)) return error;
  const message = redaction.text(error.message);
  if (message === error.message) return error;
  if (error instanceof Failure) return new Failure(error.code, message, { details: redaction.value(error.details), hint: error.hint });
  return new Error(message);
}
