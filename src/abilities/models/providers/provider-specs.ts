import type { PROVIDER_TYPES } from "../../../contract/config.ts";
import { Secret } from "../../../contract/secret.ts";
import type { Settings } from "../../../settings/load-settings.ts";
import type { KeyedProvider } from "../../../settings/model-keys.ts";
import { USUAL_KEYS } from "../../../settings/model-keys.ts";

export type ProviderType = (typeof PROVIDER_TYPES)[number];

/** Where models by a first name are, and with which key. */
export interface ProviderSpec {
  readonly name: string;
  readonly type: ProviderType;
  /** Empty: nobody has said it, and it cannot be guessed. */
  readonly baseUrl: string;
  readonly apiKey: Secret | null;
  /** False: it asks nobody for a key. */
  readonly needsKey: boolean;
  /** The address is not the provider's own. */
  readonly isElsewhere: boolean;
}

const HOMES: Readonly<Record<ProviderType, string>> = {
  "openai-compatible": "",
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com/v1",
  google: "https://generativelanguage.googleapis.com/v1beta",
  openrouter: "https://openrouter.ai/api/v1",
  ollama: "http://127.0.0.1:11434/v1",
};
export const LM_STUDIO = "http://127.0.0.1:1234/v1";
/** Names that need no line in the config. */
const WELL_KNOWN: Readonly<Record<string, ProviderType>> = {
  openai: "openai",
  anthropic: "anthropic",
  google: "google",
  openrouter: "openrouter",
  ollama: "ollama",
  lmstudio: "openai-compatible",
};

/** All that there are for this config: those of the file, and the well-known ones as far as it does not say otherwise. */
export function providerSpecs({ config, modelKeys }: Pick<Settings, "config" | "modelKeys">): Map<string, ProviderSpec> {
  const names = new Set([...Object.keys(WELL_KNOWN), ...Object.keys(config.providers)]);
  return new Map(
    [...names].map((name) => {
      const written = Object.hasOwn(config.providers, name) ? config.providers[name] : undefined;
      const wellKnown = Object.hasOwn(WELL_KNOWN, name) ? WELL_KNOWN[name] : undefined;
      const type = written?.type ?? wellKnown ?? "openai-compatible";
      const home = name === "lmstudio" ? LM_STUDIO : type === "ollama" ? ollamaUrl(modelKeys.ollamaHost) : HOMES[type];
      const baseUrl = written?.base_url === undefined ? home : withPath(written.base_url, type);
      const isElsewhere = written?.base_url !== undefined;
      // The usual key goes to its own provider, or where the operator has moved that provider; never to somebody else's address.
      const usual = isKeyed(type) && (!isElsewhere || name === type) ? modelKeys.keys[type] : undefined;
      const apiKey = trimmed(written?.api_key) ?? usual ?? null;
      return [name, { name, type, baseUrl, apiKey, needsKey: isKeyed(type) && !isElsewhere, isElsewhere }];
    }),
  );
}

/** As people paste it. Nothing but space is no key. */
function trimmed(key: Secret | undefined): Secret | undefined {
  const text = key?.reveal().trim() ?? "";
  return text === "" ? undefined : new Secret(text);
}

/** What to set so that the provider answers. */
export function keyNameOf({ type, name }: Pick<ProviderSpec, "type" | "name">): string {
  return isKeyed(type) ? USUAL_KEYS[type][0] : `${name.toUpperCase().replace(/\W/g, "_")}_API_KEY`;
}

export function isKeyed(type: string): type is KeyedProvider {
  return Object.hasOwn(USUAL_KEYS, type);
}

/** As Ollama reads its own variable: a host, a port, or both; and what it listens on everywhere is asked here. */
export function ollamaUrl(host: string | null): string {
  if (host === null) return HOMES.ollama;
  const written = /^https?:\/\//.test(host) ? host : `http://${host.startsWith(":") ? `127.0.0.1${host}` : host}`;
  if (!URL.canParse(written)) return HOMES.ollama;
  const url = new URL(written);
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = "127.0.0.1";
  const hasPort = /:\d+\/?$/.test(written.replace(/^https?:\/\//, ""));
  if (!hasPort && url.protocol === "http:") url.port = "11434";
  return withPath(url.href, "ollama");
}

/** `http://host` stands for where the provider has its models by custom. Where there is no custom, it is taken as it is. */
function withPath(written: string, type: ProviderType): string {
  const url = written.replace(/\/+$/, "");
  if (HOMES[type] === "" || new URL(url).pathname !== "/") return url;
  return url + new URL(HOMES[type]).pathname;
}
