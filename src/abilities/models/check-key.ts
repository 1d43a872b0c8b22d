import type { KeyedProvider } from "../../settings/model-keys.ts";

/** What a provider says about a key. `unknown`: it could not be asked. */
export interface CheckedKey {
  readonly verdict: "accepted" | "refused" | "unknown";
  readonly because: string;
}

const WITHIN_MS = 15_000;
/** Calls that need a key and cost nothing. OpenRouter lists its models to everybody, so that it is asked about the key itself. */
const CALLS: Readonly<Record<KeyedProvider, { readonly url: string; headers(key: string): Record<string, string> }>> = {
  openai: { url: "https://api.openai.com/v1/models", headers: (key) => ({ authorization: `Bearer ${key}` }) },
  anthropic: {
    url: "https://api.anthropic.com/v1/models",
    headers: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
  },
  google: { url: "https://generativelanguage.googleapis.com/v1beta/models", headers: (key) => ({ "x-goog-api-key": key }) },
  openrouter: { url: "https://openrouter.ai/api/v1/key", headers: (key) => ({ authorization: `Bearer ${key}` }) },
};

/** Asks the provider, with a real call, before anybody relies on the key. `baseUrl`: instead of the provider's own. */
export async function checkKey(provider: KeyedProvider, key: string, baseUrl?: string): Promise<CheckedKey> {
  const { url, headers } = CALLS[provider];
  const asked = baseUrl === undefined ? url : `${baseUrl.replace(/\/+$/, "")}/${url.split("/").at(-1)}`;
  // No header can hold it, and no provider gives such a key.
  if (!/^[\x21-\x7e]+$/.test(key)) return { verdict: "refused", because: "a key is letters, digits and signs without spaces" };
  try {
    const response = await fetch(asked, { headers: headers(key), redirect: "manual", signal: AbortSignal.timeout(WITHIN_MS) });
    await response.body?.cancel();
    const { status } = response;
    if (status === 200) return { verdict: "accepted", because: `${provider} accepts it` };
    // Google says 400 of a key that is none.
    if (status === 401 || status === 403 || (provider === "google" && status === 400))
      return { verdict: "refused", because: `${provider} does not accept it (${status})` };
    return { verdict: "unknown", because: `${provider} answers ${status}` };
  } catch (error) {
    const { name, cause } = error as Error;
    const code = (cause as NodeJS.ErrnoException | undefined)?.code;
    return { verdict: "unknown", because: `${provider} cannot be reached (${name === "TimeoutError" ? "no answer" : (code ?? name)})` };
  }
}
