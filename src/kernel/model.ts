/** What was said in a conversation. */
export interface Said {
  readonly role: "user" | "assistant";
  readonly text: string;
}

export interface Image {
  readonly mediaType: string;
  /** Base64. */
  readonly data: string;
}

/** A call as a model asks for it. */
export interface ModelCall {
  /** Of the model's making: unique within one answer at most. */
  readonly id: string;
  readonly tool: string;
  /** As the model wrote them: JSON, or what was meant to be JSON. */
  readonly args: string;
}

export interface ModelCallResult {
  readonly id: string;
  readonly tool: string;
  readonly text: string;
  readonly failed: boolean;
  readonly images?: readonly Image[];
}

export type ModelMessage =
  | { readonly role: "user"; readonly text: string; readonly images?: readonly Image[] }
  /** `opaque`: what the provider gave with this answer and wants back with it; for that provider alone. */
  | { readonly role: "assistant"; readonly text: string; readonly calls?: readonly ModelCall[]; readonly opaque?: unknown }
  | { readonly role: "tool"; readonly results: readonly ModelCallResult[] };

/** A tool as a model is told of it. */
export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface ModelSettings {
  readonly temperature?: number;
  readonly topP?: number;
  readonly maxOutputTokens?: number;
  readonly stop?: readonly string[];
  readonly seed?: number;
  readonly toolChoice?: "auto" | "none" | "required" | { readonly tool: string };
  /** JSON Schema that the text must fit; `true`: any JSON. */
  readonly json?: Readonly<Record<string, unknown>> | true;
}

/** Ordered for the caches of providers: what stays the same from turn to turn comes first. */
export interface ModelRequest {
  /** The same from turn to turn. */
  readonly system: string | null;
  readonly tools?: readonly ToolOffer[];
  /** What may be another in the next turn: memory, notes. Told after `system`, before the conversation. */
  readonly recalled?: string | null;
  /** Oldest first; the last one is to be answered. */
  readonly messages: readonly ModelMessage[];
  readonly settings?: ModelSettings;
  /** The same for requests with the same beginning, for providers that want to know. */
  readonly cacheKey?: string;
}

export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Of the input tokens, those that the provider had kept. */
  readonly cachedInputTokens?: number;
}

export type ModelChunk =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "call"; readonly call: ModelCall }
  | { readonly kind: "opaque"; readonly data: unknown }
  /** `model`: which one has answered, where several might. `cut`: the answer reached its limit and is not whole. */
  | { readonly kind: "usage"; readonly usage: ModelUsage; readonly model?: string; readonly cut?: boolean }
  /** Another attempt, or another model, begins: whatever came before is void. */
  | { readonly kind: "restart"; readonly because: string };

/** US dollars for a million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  readonly cachedInput?: number;
}

/** Port: something that answers. It stops soon after the signal aborts; whatever goes wrong with a provider is `model.failed`. */
export interface Model {
  readonly name: string;
  /** Its answers are made by rules, not by a language model: users are told so. */
  readonly scripted: boolean;
  /** How much it takes at once; absent: not known. */
  readonly contextTokens?: number;
  readonly seesImages?: boolean;
  /** Of the dearest of a chain; null or absent: not known. */
  readonly price?: ModelPrice | null;
  stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelChunk, void, void>;
}

/** Port: where agents' model names are looked up. */
export interface Models {
  /** Several names: the next is asked when one cannot answer. Throws `model.unknown`. */
  resolve(names: string | readonly string[]): Model;
  /** What a model by this name costs; null: not known. */
  priceOf?(name: string): ModelPrice | null;
}

/** The words of a message; those of results one after another. */
export function wordsOf(message: ModelMessage | undefined): string {
  if (message === undefined) return "";
  return message.role === "tool" ? message.results.map(({ text }) => text).join("\n") : message.text;
}
