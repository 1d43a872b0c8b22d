import type { ModelCall, ModelMessage } from "../../../kernel/model.ts";
import type { Prompt } from "./open-provider.ts";

type AssistantMessage = Extract<ModelMessage, { role: "assistant" }>;
type AssistantPart = Extract<Prompt[number], { role: "assistant" }>["content"][number];
type Options = NonNullable<AssistantPart["providerOptions"]>;

/** One part of an answer, with what its provider wants back beside it. The words themselves are in the message. */
export type KeptPart =
  | { readonly kind: "reasoning"; readonly text: string; readonly options?: Options }
  | { readonly kind: "text"; readonly characters: number; readonly options?: Options }
  | { readonly kind: "call"; readonly id: string; readonly options?: Options };

/** The order of an answer's parts and their signatures: providers that sign their thoughts refuse them in another order. */
export interface Kept {
  readonly from: string;
  readonly parts: readonly KeptPart[];
}

/** Null: nothing in the answer needs to come back. Thoughts without a signature do as long as the work that they began goes on. */
export function keptOf(from: string, parts: readonly KeptPart[]): Kept | null {
  const signed = parts.some(({ options }) => options !== undefined);
  const atWork = parts.some(({ kind }) => kind === "reasoning") && parts.some(({ kind }) => kind === "call");
  // As plain JSON: it is stored, and its hash is taken.
  return signed || atWork ? (JSON.parse(JSON.stringify({ from, parts })) as Kept) : null;
}

/** What an assistant said, as its provider said it where that is known; without foreign thoughts for any other. */
export function assistantParts(message: AssistantMessage, provider: string, idOf: (call: ModelCall) => string): AssistantPart[] {
  const calls = message.calls ?? [];
  const kept = keptFor(message.opaque, provider);
  if (kept === null || !fits(kept, message)) {
    const text: AssistantPart[] = isBlank(message.text) ? [] : [{ type: "text", text: message.text }];
    return [...text, ...calls.map((call) => callPart(call, idOf(call), undefined))];
  }
  let at = 0;
  const left = [...calls];
  return kept.parts.flatMap((part): AssistantPart[] => {
    const options = part.options === undefined ? {} : { providerOptions: part.options };
    if (part.kind === "reasoning") return [{ type: "reasoning", text: part.text, ...options }];
    if (part.kind === "text") {
      const text = message.text.slice(at, at + part.characters);
      at += part.characters;
      return isBlank(text) && part.options === undefined ? [] : [{ type: "text", text, ...options }];
    }
    const [call] = left.splice(
      left.findIndex(({ id }) => id === part.id),
      1,
    );
    return call === undefined ? [] : [callPart(call, idOf(call), part.options)];
  });
}

function keptFor(opaque: unknown, provider: string): Kept | null {
  const kept = opaque as Kept | null | undefined;
  return typeof kept === "object" && kept?.from === provider && Array.isArray(kept.parts) ? kept : null;
}

/** Some providers refuse words that are nothing but space, even their own. */
function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** A message that was shortened or cleaned since no longer has these parts. */
function fits({ parts }: Kept, { text, calls = [] }: AssistantMessage): boolean {
  const characters = parts.reduce((sum, part) => sum + (part.kind === "text" ? part.characters : 0), 0);
  const ids = parts.flatMap((part) => (part.kind === "call" ? [part.id] : []));
  return characters === text.length && ids.length === calls.length && calls.every(({ id }) => ids.includes(id));
}

function callPart({ tool, args }: ModelCall, toolCallId: string, providerOptions: Options | undefined): AssistantPart {
  const options = providerOptions === undefined ? {} : { providerOptions };
  return { type: "tool-call", toolCallId, toolName: sentName(tool), input: inputOf(args), ...options };
}

/** A name that a model has made up goes back with its call, and providers refuse the whole request for one they would not have taken. */
export function sentName(tool: string): string {
  return tool.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}

/** Providers take objects alone: what was none is shown inside one. */
function inputOf(args: string): unknown {
  try {
    const input: unknown = args.trim() === "" ? {} : JSON.parse(args);
    if (typeof input === "object" && input !== null && !Array.isArray(input)) return input;
  } catch {
    // Shown as it was written.
  }
  return { not_json: args };
}
