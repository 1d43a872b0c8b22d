import type { Settings } from "../../settings/load-settings.ts";
import { type KeyedProvider, USUAL_KEYS } from "../../settings/model-keys.ts";

/** Of each provider one that is able and not dear; where there is one, a name that its maker moves on by himself. */
const MODELS: Readonly<Record<KeyedProvider, string>> = {
  openai: "openai/gpt-5.6-terra",
  anthropic: "anthropic/claude-sonnet-5-5",
  google: "google/gemini-flash-latest",
  openrouter: "openrouter/openrouter/auto",
};
/** Answers at once, without a key and without a network: an agent that names no model is still an agent. */
const OFFLINE = "offline/demo";

/** Of an agent for which nobody names a model: of the first well-known provider with a key; else one on this machine; else the offline one. */
export function defaultModels({ config, modelKeys }: Pick<Settings, "config" | "modelKeys">): readonly [string] {
  const keyed = (Object.keys(USUAL_KEYS) as KeyedProvider[]).find(
    (provider) => modelKeys.keys[provider] !== undefined || config.providers[provider]?.api_key !== undefined,
  );
  return [keyed === undefined ? (modelKeys.localModel ?? OFFLINE) : MODELS[keyed]];
}

export function defaultModelOf(provider: KeyedProvider): string {
  return MODELS[provider];
}

/** Whether one on this machine would be of use: nobody has named a model for some agent, and there is no key. */
export function wantsLocalModel({ config, modelKeys }: Pick<Settings, "config" | "modelKeys">): boolean {
  if (!modelKeys.looksForLocal || config.model !== undefined) return false;
  return Object.values(config.agents).some(({ model }) => model === undefined) && defaultModels({ config, modelKeys })[0] === OFFLINE;
}
