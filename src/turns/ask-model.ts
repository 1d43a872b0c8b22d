import { canonicalJson, sha256, WrittenJson } from "../kernel/canonical-json.ts";
import { Failure } from "../kernel/failure.ts";
import type { LiveChunk } from "../kernel/live.ts";
import type { Model, ModelCall, ModelMessage, ModelPrice, ModelRequest, ModelUsage } from "../kernel/model.ts";
import { writtenOffers } from "../kernel/tool-offer.ts";
import type { Response } from "../records/journal/steps.ts";
import { costOf } from "../records/usage/estimate.ts";

/** A model that does not stop must not fill the memory. */
const MAX_REPLY_CHARACTERS = 1_000_000;
const MAX_CALLS = 128;
const MAX_ARGUMENT_CHARACTERS = 1_000_000;
/** No tool has a longer one. */
const MAX_NAME_CHARACTERS = 200;
/** Deeper, and whoever writes them as JSON again runs out of room. */
const MAX_ARGUMENT_DEPTH = 200;

export type Emit = (chunk: LiveChunk) => void;

/** Asks once, and answers with what is to be recorded. Nothing of it has been acted on. `hash`: of the request. */
export async function askModel(
  model: Model,
  request: ModelRequest,
  priceOf: (name: string) => ModelPrice | null,
  emit: Emit,
  signal: AbortSignal,
  hash: () => string = () => requestHashOf(request),
): Promise<Response> {
  try {
    return await answer(model, request, priceOf, emit, signal, hash);
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
  hash: () => string,
): Promise<Response> {
  let text = "";
  let calls: ModelCall[] = [];
  let opaque: unknown;
  let usage: ModelUsage | null = null;
  let name = model.name;
  let cut = false;
  let written = 0;
  for await (const chunk of model.stream(request, signal)) {
    signal.throwIfAborted();
    switch (chunk.kind) {
      case "restart":
        [text, calls, opaque, usage, cut, written] = ["", [], undefined, null, false, 0];
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
        calls.push(bearable(chunk.call));
        written += chunk.call.args.length;
        if (written > MAX_ARGUMENT_CHARACTERS)
          throw new Failure("model.failed", `${model.name} wrote arguments of more than ${MAX_ARGUMENT_CHARACTERS} characters`);
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
  const requestHash = hash();
  const price = priceOf(name);
  return {
    text,
    calls,
    ...(opaque === undefined ? {} : { opaque }),
    model: name,
    usage,
    cost: price === null || usage === null ? null : costOf(usage, price),
    ...(cut ? { cut } : {}),
    requestHash,
  };
}

/**
 * Of what the model is told. How long its answer may be is not told to it, and may depend on what is left of a budget. `written`: messages that were
 * written as canonical JSON before.
 */
export function requestHashOf(request: ModelRequest, written: (message: ModelMessage) => string | undefined = () => undefined): string {
  const { tools = [], ...told } = request;
  const { maxOutputTokens: _limit, ...settings } = request.settings ?? {};
  const messages = request.messages.map((message) => {
    const text = written(message);
    return text === undefined ? message : new WrittenJson(text);
  });
  return sha256(`${canonicalJson({ ...told, messages, settings })}${writtenOffers(tools)}`);
}

/** As it can be kept and told again. */
function bearable({ id, tool, args }: ModelCall): ModelCall {
  const written = isTooDeep(args) ? `too deeply nested: ${args.slice(0, 100)}` : args;
  return { id: nameOf(id), tool: nameOf(tool), args: written.replaceAll("\0", "") };
}

function nameOf(text: string): string {
  return text.replaceAll("\0", "").slice(0, MAX_NAME_CHARACTERS).toWellFormed();
}

function isTooDeep(json: string): boolean {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < json.length; at++) {
    const mark = json[at];
    if (mark === '"') inText = !inText;
    else if (inText) at += mark === "\\" ? 1 : 0;
    else if (mark === "[" || mark === "{") depth++;
    else if (mark === "]" || mark === "}") depth--;
    if (depth > MAX_ARGUMENT_DEPTH) return true;
  }
  return false;
}
