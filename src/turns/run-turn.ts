import { Failure } from "../kernel/failure.ts";
import type { Model, ModelRequest, ModelUsage } from "../kernel/model.ts";

/** A model that does not stop must not fill the memory. */
const MAX_REPLY_CHARACTERS = 1_000_000;

export interface Answer {
  readonly text: string;
  readonly usage: ModelUsage | null;
}

/** The agent loop: a function of the context alone. Nothing it does outlives it; what comes of its answer is the caller's commit. */
export async function runTurn(model: Model, context: ModelRequest, emit: (text: string) => void, signal: AbortSignal): Promise<Answer> {
  try {
    return await answer(model, context, emit, signal);
  } catch (error) {
    if (signal.aborted || error instanceof Failure) throw error;
    throw new Failure("model.failed", `${model.name} failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

async function answer(model: Model, context: ModelRequest, emit: (text: string) => void, signal: AbortSignal): Promise<Answer> {
  let text = "";
  let usage: ModelUsage | null = null;
  for await (const chunk of model.stream(context, signal)) {
    signal.throwIfAborted();
    if (chunk.kind === "usage") {
      usage = chunk.usage;
      continue;
    }
    if (chunk.kind !== "text") continue;
    // No database text can hold it, and no reader would miss it.
    const piece = chunk.text.replaceAll("\0", "");
    text += piece;
    if (text.length > MAX_REPLY_CHARACTERS)
      throw new Failure("model.failed", `${model.name} answered more than ${MAX_REPLY_CHARACTERS} characters`);
    emit(piece);
  }
  return { text, usage };
}
