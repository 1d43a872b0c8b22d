import { Failure } from "../../kernel/failure.ts";
import type { Model, ModelChunk, ModelPrice, ModelRequest } from "../../kernel/model.ts";
import { isForNext } from "./resilient-model.ts";

/** Several as one: the next is asked when one cannot answer. What one had begun to say is void. */
export function modelChain(models: readonly [Model, ...Model[]]): Model {
  const [first, ...others] = models;
  if (others.length === 0) return first;
  const contexts = models.flatMap(({ contextTokens }) => contextTokens ?? []);
  return {
    name: first.name,
    scripted: models.every(({ scripted }) => scripted),
    ...(contexts.length === 0 ? {} : { contextTokens: Math.min(...contexts) }),
    // Each leaves out what it cannot see.
    seesImages: models.some(({ seesImages }) => seesImages === true),
    price: dearest(models),
    stream: (request, signal) => oneAfterAnother(models, request, signal),
  };
}

async function* oneAfterAnother(
  models: readonly Model[],
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelChunk, void, void> {
  const failures: Failure[] = [];
  for (const model of models) {
    let said = false;
    try {
      for await (const chunk of model.stream(request, signal)) {
        said = chunk.kind !== "restart" && (said || chunk.kind !== "usage");
        yield chunk.kind === "usage" ? { ...chunk, model: chunk.model ?? model.name } : chunk;
      }
      return;
    } catch (error) {
      if (!isForNext(error, signal)) throw error;
      failures.push(error);
      if (said && model !== models.at(-1)) yield { kind: "restart", because: error.message };
    }
  }
  throw together(failures);
}

/** What all of them said. A conversation that is too long for one may be made shorter, so that this goes before all else. */
function together(failures: readonly Failure[]): Failure {
  const told =
    failures.find(({ code }) => code === "model.too_long") ?? failures.find(({ entry }) => entry.retry === "later") ?? failures[0];
  if (told === undefined) return new Failure("internal.bug", "a chain of models has ended without a word");
  return new Failure(told.code, failures.map(({ message }) => message).join("; "), { cause: told, hint: told.hint, details: told.details });
}

function dearest(models: readonly Model[]): ModelPrice | null {
  const known = models.flatMap(({ price }) => price ?? []);
  return known.reduce<ModelPrice | null>((most, price) => (most === null || price.output > most.output ? price : most), null);
}
