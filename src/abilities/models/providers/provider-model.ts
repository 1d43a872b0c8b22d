import { type Model, type ModelRequest, wordsOf } from "../../../kernel/model.ts";
import type { Random } from "../../../kernel/random.ts";
import type { Breaker } from "../breaker.ts";
import type { ModelFacts } from "../model-facts.ts";
import { type Patience, resilientStream, type Time } from "../resilient-model.ts";
import { fromStream, type RawChunk } from "./from-stream.ts";
import type { OpenModel } from "./open-provider.ts";
import type { ProviderSpec } from "./provider-specs.ts";
import { troubleOf } from "./provider-trouble.ts";
import { callOptions } from "./to-prompt.ts";

export interface ProviderModelParts {
  readonly spec: ProviderSpec;
  readonly id: string;
  readonly facts: ModelFacts;
  readonly open: () => Promise<OpenModel>;
  readonly breaker: Breaker;
  readonly patience: Patience;
  readonly time: Time;
  readonly random: Random;
}

/** A model of a provider, behind our port. */
export function providerModel(parts: ProviderModelParts): Model {
  const { spec, id, facts, time } = parts;
  const name = `${spec.name}/${id}`;
  const attempts = {
    ...parts,
    name,
    attempt: (request: ModelRequest, signal: AbortSignal) => attempt(parts, request, signal),
    judge: (error: unknown) => troubleOf(error, spec, name, time.now()),
  };
  return {
    name,
    scripted: false,
    ...(facts.contextTokens === undefined ? {} : { contextTokens: facts.contextTokens }),
    seesImages: facts.seesImages,
    price: facts.price,
    stream: (request, signal) => resilientStream(attempts, request, signal),
  };
}

async function* attempt(
  { spec, id, facts, open }: ProviderModelParts,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<RawChunk> {
  const model = (await open())(id);
  const asked = { provider: spec.name, type: spec.type, id, seesImages: facts.seesImages };
  const { stream } = await model.doStream(callOptions(request, asked, signal));
  yield* fromStream(stream, spec.name, charactersOf(request));
}

/** For servers that do not count. */
function charactersOf({ system, recalled, messages, tools = [] }: ModelRequest): number {
  const told = (system?.length ?? 0) + (recalled?.length ?? 0) + (tools.length === 0 ? 0 : JSON.stringify(tools).length);
  return messages.reduce((sum, message) => sum + wordsOf(message).length + callsOf(message), told);
}

function callsOf(message: ModelRequest["messages"][number]): number {
  return message.role === "assistant" ? (message.calls ?? []).reduce((sum, { args }) => sum + args.length, 0) : 0;
}
