import type { Image, ModelCall, ModelMessage, ModelRequest } from "../../../kernel/model.ts";
import { assistantParts, sentName } from "./opaque-parts.ts";
import type { CallOptions, Prompt } from "./open-provider.ts";
import type { ProviderType } from "./provider-specs.ts";

type PromptMessage = Prompt[number];
type Options = NonNullable<PromptMessage["providerOptions"]>;
type ResultPart = Extract<Extract<PromptMessage, { role: "tool" }>["content"][number], { type: "tool-result" }>;

/** Who is asked: what a provider wants to be told, and how, differs. */
export interface Asked {
  readonly provider: string;
  readonly type: ProviderType;
  readonly id: string;
  readonly seesImages: boolean;
}

/** Up to here the provider shall keep what it has read. */
const KEPT: Options = { anthropic: { cacheControl: { type: "ephemeral" } } };

export function callOptions(request: ModelRequest, asked: Asked, signal: AbortSignal): CallOptions {
  const { settings = {}, tools = [] } = request;
  const { temperature, topP, maxOutputTokens, stop, seed, toolChoice, json } = settings;
  return {
    prompt: toPrompt(request, asked),
    abortSignal: signal,
    // Whatever comes is a sign of life, also what the package does not make a part of.
    includeRawChunks: true,
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(stop === undefined ? {} : { stopSequences: [...stop] }),
    ...(seed === undefined ? {} : { seed }),
    ...(json === undefined ? {} : { responseFormat: json === true ? { type: "json" } : { type: "json", schema: json, name: "answer" } }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, parameters }) => ({ type: "function", name, description, inputSchema: parameters })),
          toolChoice: choiceOf(toolChoice),
        }),
    ...providerOptions(request, asked),
  };
}

function choiceOf(choice: NonNullable<ModelRequest["settings"]>["toolChoice"]): NonNullable<CallOptions["toolChoice"]> {
  return typeof choice === "object" ? { type: "tool", toolName: choice.tool } : { type: choice ?? "auto" };
}

function providerOptions({ cacheKey }: ModelRequest, { type }: Asked): Pick<CallOptions, "providerOptions"> {
  if (type !== "openai") return {};
  // Nothing is to be kept at the provider; what it has thought comes back to it with the conversation.
  return {
    providerOptions: { openai: { store: false, strictJsonSchema: false, ...(cacheKey === undefined ? {} : { promptCacheKey: cacheKey }) } },
  };
}

/** Ordered so that the beginning stays the same from turn to turn. */
export function toPrompt(request: ModelRequest, asked: Asked): Prompt {
  const ids = new CallIds();
  const said = request.messages.flatMap((message) => messagesOf(message, asked, ids));
  const last = said.at(-1);
  if (last && marksKept(asked)) said[said.length - 1] = { ...last, providerOptions: { ...last.providerOptions, ...KEPT } };
  return [...systemOf(request, asked), ...said];
}

function marksKept({ type, id }: Asked): boolean {
  return type === "anthropic" || (type === "openrouter" && id.startsWith("anthropic/"));
}

function systemOf({ system, recalled }: ModelRequest, asked: Asked): PromptMessage[] {
  const parts = [system, recalled ?? null].filter((text): text is string => text !== null && text !== "");
  // The templates of many local models take one system message and no second.
  if (asked.type === "openai-compatible" || asked.type === "ollama")
    return parts.length === 0 ? [] : [{ role: "system", content: parts.join("\n\n") }];
  return parts.map((content, index) => ({
    role: "system",
    content,
    ...(index === 0 && system && marksKept(asked) ? { providerOptions: KEPT } : {}),
  }));
}

function messagesOf(message: ModelMessage, asked: Asked, ids: CallIds): PromptMessage[] {
  switch (message.role) {
    case "user":
      return [{ role: "user", content: [...(message.text === "" ? [] : [textPart(message.text)]), ...imageParts(message.images, asked)] }];
    case "assistant": {
      ids.begin();
      const content = assistantParts(message, asked.provider, (call) => ids.of(call));
      return content.length === 0 ? [] : [{ role: "assistant", content }];
    }
    case "tool": {
      // Others would get the words wrapped in JSON.
      const isMarked = asked.type === "anthropic";
      const results = message.results.map(({ id, tool, text, failed, images = [] }): ResultPart => {
        const shown = asked.type === "anthropic" && asked.seesImages ? images : [];
        const note = images.length > 0 && !asked.seesImages ? `\n${UNSEEN}` : "";
        return {
          type: "tool-result",
          toolCallId: ids.answered(id),
          toolName: sentName(tool),
          output: outputOf(text + note, failed && isMarked, shown),
        };
      });
      const images = asked.type === "anthropic" || !asked.seesImages ? [] : message.results.flatMap((result) => result.images ?? []);
      // Others take no images in results: they come after them, as if shown by the user.
      const shown = images.length === 0 ? [] : [textPart("The images that the tools have given:"), ...imageParts(images, asked)];
      return [{ role: "tool", content: results }, ...(shown.length === 0 ? [] : [{ role: "user" as const, content: shown }])];
    }
  }
}

function outputOf(value: string, failed: boolean, images: readonly Image[]): ResultPart["output"] {
  if (images.length === 0) return { type: failed ? "error-text" : "text", value };
  return { type: "content", value: [textPart(value), ...images.map(filePart)] };
}

const UNSEEN = "[an image was left out: this model does not see images]";

function imageParts(images: readonly Image[] | undefined, { seesImages }: Asked) {
  return (images ?? []).map((image) => (seesImages ? filePart(image) : textPart(UNSEEN)));
}

function textPart(text: string) {
  return { type: "text" as const, text };
}

function filePart({ mediaType, data }: Image) {
  return { type: "file" as const, mediaType, data: { type: "data" as const, data } };
}

/**
 * Some servers number the calls of each answer anew, and another provider's ids may be none for this one: within a request every call has
 * an id of its own that everybody takes.
 */
class CallIds {
  /** With the number that the next one of the same name gets: a long conversation may have thousands of them. */
  readonly #taken = new Map<string, number>();
  readonly #open = new Map<string, string[]>();

  /** Results belong to the calls of the answer before them. */
  begin(): void {
    this.#open.clear();
  }

  of({ id }: ModelCall): string {
    const plain = id.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 60) || "call";
    let own = plain;
    let count = this.#taken.get(plain) ?? 2;
    for (; this.#taken.has(own); count++) own = `${plain}_${count}`;
    this.#taken.set(plain, count).set(own, this.#taken.get(own) ?? 2);
    this.#open.set(id, [...(this.#open.get(id) ?? []), own]);
    return own;
  }

  /** Two calls of one answer may have the same id: their results come in the same order. */
  answered(id: string): string {
    return this.#open.get(id)?.shift() ?? id;
  }
}
