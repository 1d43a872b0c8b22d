import { Secret } from "../contract/secret.ts";

/** What the keys of well-known providers are called when nobody names them; the first that is set counts. In the order in which a default is looked for. */
export const USUAL_KEYS = {
  openai: ["OPENAI_API_KEY"],
  anthropic: ["ANTHROPIC_API_KEY"],
  google: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
  openrouter: ["OPENROUTER_API_KEY"],
} as const satisfies Record<string, readonly string[]>;
export type KeyedProvider = keyof typeof USUAL_KEYS;

/** What the environment and `.env` say about models, beside the config. */
export interface ModelKeys {
  readonly keys: Readonly<Partial<Record<KeyedProvider, Secret>>>;
  /** `$OLLAMA_HOST`, as Ollama itself reads it; null: not set. */
  readonly ollamaHost: string | null;
  /** Whether a model on this machine may be looked for; `GUILDHALL_LOCAL_MODELS=off` says no. */
  readonly looksForLocal: boolean;
  /** One that answers on this machine, as `<provider>/<model>`; null: none was found, or nobody has looked. */
  readonly localModel: string | null;
}

export const NO_MODEL_KEYS: ModelKeys = { keys: {}, ollamaHost: null, looksForLocal: false, localModel: null };

export function modelKeysOf(lookUp: (name: string) => string | undefined): ModelKeys {
  const found = Object.entries(USUAL_KEYS).flatMap(([provider, names]) => {
    const value = names.map((name) => lookUp(name)?.trim()).find(Boolean);
    return value ? [[provider, new Secret(value)]] : [];
  });
  return {
    keys: Object.fromEntries(found),
    ollamaHost: lookUp("OLLAMA_HOST")?.trim() || null,
    looksForLocal: lookUp("GUILDHALL_LOCAL_MODELS") !== "off",
    localModel: null,
  };
}
