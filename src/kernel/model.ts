export interface Said {
  readonly role: "user" | "assistant";
  readonly text: string;
}

export interface ModelRequest {
  readonly system: string | null;
  /** Oldest first; the last one is to be answered. */
  readonly messages: readonly Said[];
}

export interface ModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export type ModelChunk = { readonly kind: "text"; readonly text: string } | { readonly kind: "usage"; readonly usage: ModelUsage };

/** Port: something that answers. It stops soon after the signal aborts; whatever goes wrong with a provider is `model.failed`. */
export interface Model {
  readonly name: string;
  /** Its answers are made by rules, not by a language model: users are told so. */
  readonly scripted: boolean;
  stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelChunk, void, void>;
}

/** Port: where agents' model names are looked up. */
export interface Models {
  /** Throws `model.unknown`. */
  resolve(name: string): Model;
}
