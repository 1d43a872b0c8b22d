import { canonicalJson, sha256 } from "../kernel/canonical-json.ts";
import { Failure } from "../kernel/failure.ts";
import type { LiveChunk } from "../kernel/live.ts";
import type { Model, ModelCall, ModelPrice, ModelRequest, ModelUsage } from "../kernel/model.ts";
import type { Response } from "../records/journal/steps.ts";

/** A model that does not stop must not fill the memory. */
const MAX_REPLY_CHARACTERS = 1_000_000;
const MAX_CALLS = 128;
const MAX_ARGUMENT_CHARACTERS = 1_000_000;

export type Emit = (chunk: LiveChunk) => void;

/** Asks once, and answers with what is to be recorded. Nothing of it has been acted on. */
export async function askModel(
  model: Model,
  request: ModelRequest,
  priceOf: (name: string) => ModelPrice | null,
  emit: Emit,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await answer(model, request, priceOf, emit, signal);
  } catch (error) {
    if (signal.aborted || error instanceof Failure) throw error;
    throw new Failure("model.failed", `${model.name} failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

async function answer(
  model: Model,
  request: ModelRequest,
  priceOf: (name: string) => ModelPrice | null,
  emit: Emit,
  signal: AbortSignal,
): Promise<Response> {
  let text = "";
  let calls: ModelCall[] = [];
  let opaque: unknown;
  let usage: ModelUsage | null = null;
  let name = model.name;
  let cut = false;
  for await (const chunk of model.stream(request, signal)) {
    signal.throwIfAborted();
    switch (chunk.kind) {
      case "restart":
        [text, calls, opaque, usage] = ["", [], undefined, null];
        emit({ kind: "restart" });
        break;
      case "usage":
        usage = chunk.usage;
        name = chunk.model ?? name;
        cut = chunk.cut ?? false;
        break;
      case "opaque":
        opaque = chunk.data;
        break;
      case "call":
        calls.push(withoutNul(chunk.call));
        if (calls.length > MAX_CALLS) throw new Failure("model.failed", `${model.name} made more than ${MAX_CALLS} calls at once`);
        break;
      case "text": {
        // No database text can hold it, and no reader would miss it.
        const piece = chunk.text.replaceAll("\0", "");
        text += piece;
        if (text.length > MAX_REPLY_CHARACTERS)
          throw new Failure("model.failed", `${model.name} answered more than ${MAX_REPLY_CHARACTERS} characters`);
        emit({ kind: "text", text: piece });
      }
    }
  }
  const requestHash = sha256(canonicalJson(request));
  return {
    text,
    calls,
    ...(opaque === undefined ? {} : { opaque }),
    model: name,
    usage,
    cost: costOf(usage, priceOf(name)),
    ...(cut ? { cut } : {}),
    requestHash,
  };
}

function withoutNul({ id, tool, args }: ModelCall): ModelCall {
  if (args.length > MAX_ARGUMENT_CHARACTERS) throw new Failure("model.failed", `the arguments of ${tool.slice(0, 100)} are too long`);
  return { id: id.replaceAll("\0", ""), tool: tool.replaceAll("\0", ""), args: args.replaceAll("\0", "") };
}

/** In millionths of a dollar, which is what dollars for a million tokens come to by the token. */
export function costOf(usage: ModelUsage | null, price: ModelPrice | null): number | null {
  if (usage === null || price === null) return null;
  const cached = usage.cachedInputTokens ?? 0;
  return Math.round(
    (usage.inputTokens - cached) * price.input + cached * (price.cachedInput ?? price.input) + usage.outputTokens * price.output,
  );
}
