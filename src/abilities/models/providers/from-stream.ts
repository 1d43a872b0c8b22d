import type { ModelChunk, ModelUsage } from "../../../kernel/model.ts";
import { type KeptPart, keptOf } from "./opaque-parts.ts";
import type { SdkModel } from "./open-provider.ts";

type Streamed = Awaited<ReturnType<SdkModel["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;
type Finish = Extract<Streamed, { type: "finish" }>;
type Metadata = NonNullable<Extract<Streamed, { type: "text-end" }>["providerMetadata"]>;

/** `alive`: something came that is nobody's to see, such as a thought; whoever waits knows that it still works. */
export type RawChunk = ModelChunk | { readonly kind: "alive" };

/** An answer that ended without being whole. */
export class CutStream extends Error {}
/** The provider's filter has taken the answer away. */
export class FilteredAnswer extends Error {}

const CHARACTERS_PER_TOKEN = 4;

/** The parts of an answer as our chunks. Throws what the stream reports as an error, and when it ends too early. */
export async function* fromStream(stream: AsyncIterable<Streamed>, provider: string, asked: number): AsyncGenerator<RawChunk, void, void> {
  const parts: KeptPart[] = [];
  const thoughts = new Map<string, number>();
  const inputs = new Map<string, { tool: string; args: string }>();
  let finish: Finish | undefined;
  let characters = 0;
  let calls = 0;
  for await (const part of stream) {
    switch (part.type) {
      case "text-delta":
        characters += part.delta.length;
        addText(parts, part.delta.length, part.providerMetadata);
        yield { kind: "text", text: part.delta };
        break;
      case "text-end":
        addText(parts, 0, part.providerMetadata);
        break;
      case "reasoning-start":
        thoughts.set(part.id, parts.push({ kind: "reasoning", text: "", ...optionsOf(part.providerMetadata) }) - 1);
        yield { kind: "alive" };
        break;
      case "reasoning-delta":
        addReasoning(parts, thoughts.get(part.id), part.delta, part.providerMetadata);
        yield { kind: "alive" };
        break;
      case "reasoning-end":
        addReasoning(parts, thoughts.get(part.id), "", part.providerMetadata);
        break;
      case "tool-input-start":
        inputs.set(part.id, { tool: part.toolName, args: "" });
        yield { kind: "alive" };
        break;
      case "tool-input-delta": {
        const input = inputs.get(part.id);
        if (input) input.args += part.delta;
        yield { kind: "alive" };
        break;
      }
      case "tool-call":
        // What the provider runs by itself is not ours to run.
        if (part.providerExecuted) break;
        inputs.delete(part.toolCallId);
        calls++;
        characters += part.input.length;
        parts.push({ kind: "call", id: part.toolCallId, ...optionsOf(part.providerMetadata) });
        yield { kind: "call", call: { id: part.toolCallId, tool: part.toolName, args: part.input } };
        break;
      case "error":
        throw part.error;
      // Comes from the package itself, before the provider has said anything.
      case "stream-start":
        break;
      case "finish":
        finish = part;
        break;
      default:
        yield { kind: "alive" };
    }
  }
  const reason = finish?.finishReason;
  // Every provider says how an answer ended; one of which nothing is known has not ended.
  const isUnknown = reason?.unified === "other" && reason.raw === undefined;
  const isBroken = reason?.unified === "error" || reason?.unified === "interrupted" || reason?.raw === "error";
  if (!finish || reason === undefined || isUnknown || isBroken) throw new CutStream("the answer broke off in the middle");
  if (reason.unified === "content-filter" && characters === 0) throw new FilteredAnswer("its content filter has withheld the answer");
  // Some providers announce a call and never close it when its arguments are no JSON.
  for (const [id, input] of inputs) {
    parts.push({ kind: "call", id });
    calls++;
    yield { kind: "call", call: { id, ...input } };
  }
  const kept = keptOf(provider, parts);
  if (kept) yield { kind: "opaque", data: kept };
  const cut = reason.unified === "length" ? { cut: true } : {};
  yield { kind: "usage", usage: usageOf(finish.usage, asked, characters + calls), ...cut };
}

/** A server that does not count, or says nought, is counted for, so that no limit is passed by in silence. */
function usageOf({ inputTokens, outputTokens }: Finish["usage"], asked: number, answered: number): ModelUsage {
  return {
    inputTokens: inputTokens.total || Math.ceil(asked / CHARACTERS_PER_TOKEN),
    outputTokens: outputTokens.total || Math.ceil(answered / CHARACTERS_PER_TOKEN),
    ...(inputTokens.cacheRead ? { cachedInputTokens: inputTokens.cacheRead } : {}),
  };
}

function addText(parts: KeptPart[], characters: number, metadata: Metadata | undefined): void {
  const last = parts.at(-1);
  const options = optionsOf(metadata);
  if (last?.kind === "text") parts[parts.length - 1] = { ...last, characters: last.characters + characters, ...options };
  else if (characters > 0 || metadata) parts.push({ kind: "text", characters, ...options });
}

function addReasoning(parts: KeptPart[], index: number | undefined, delta: string, metadata: Metadata | undefined): void {
  const thought = index === undefined ? undefined : parts[index];
  if (index === undefined || thought?.kind !== "reasoning") return;
  parts[index] = { ...thought, text: thought.text + delta, ...optionsOf(metadata, thought.options) };
}

/** What came as metadata is sent back as options, under the same names. Later parts add to what earlier ones said. */
function optionsOf(metadata: Metadata | undefined, before: Metadata = {}): { options?: Metadata } {
  if (metadata === undefined || Object.values(metadata).every((inner) => Object.keys(inner).length === 0))
    return Object.keys(before).length === 0 ? {} : { options: before };
  const names = new Set([...Object.keys(before), ...Object.keys(metadata)]);
  return { options: Object.fromEntries([...names].map((name) => [name, { ...before[name], ...metadata[name] }])) };
}
