import type { LanguageModel } from "ai";
import { Failure } from "../../../kernel/failure.ts";
import type { ProviderSpec } from "./provider-specs.ts";

/** A model of the AI SDK, as its providers give it. */
export type SdkModel = Extract<LanguageModel, { readonly specificationVersion: "v4" }>;
export type CallOptions = Parameters<SdkModel["doStream"]>[0];
export type Prompt = CallOptions["prompt"];
export type OpenModel = (id: string) => SdkModel;

/** Servers without keys get this: the SDK wants one. */
const NO_KEY = "none";

/**
 * Loads the provider's package when its first model is used: each takes 30 to 150 ms, and a start needs none.
 * Address and key are always said, since the packages would look into the environment themselves.
 */
export async function openProvider(spec: ProviderSpec): Promise<OpenModel> {
  const { name, type, baseUrl: baseURL } = spec;
  const apiKey = spec.apiKey?.reveal() ?? NO_KEY;
  const settings = { baseURL, apiKey, fetch: withoutDetours };
  switch (type) {
    case "openai": {
      const openai = (await import("@ai-sdk/openai")).createOpenAI(settings);
      // Elsewhere is a server that speaks like OpenAI: most know chat completions alone.
      return (id) => (spec.isElsewhere ? openai.chat(id) : openai.responses(id));
    }
    case "anthropic": {
      const anthropic = (await import("@ai-sdk/anthropic")).createAnthropic(settings);
      return (id) => anthropic(anthropicId(id));
    }
    case "google": {
      const google = (await import("@ai-sdk/google")).createGoogle(settings);
      return (id) => google(id);
    }
    case "openrouter": {
      const openrouter = (await import("@openrouter/ai-sdk-provider")).createOpenRouter({ ...settings, compatibility: "strict" });
      return (id) => openrouter.chat(id);
    }
    case "ollama":
    case "openai-compatible": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const key = spec.apiKey === null ? {} : { apiKey };
      const compatible = createOpenAICompatible({
        name,
        baseURL,
        ...key,
        fetch: withoutDetours,
        includeUsage: true,
        supportsStructuredOutputs: true,
      });
      return (id) => compatible.chatModel(id);
    }
  }
}

/** People write `claude-opus-4.6`, as it is spoken; the provider writes it with dashes, and the first of a family with a zero. */
export function anthropicId(id: string): string {
  const dashed = id.startsWith("claude-") ? id.replaceAll(".", "-") : id;
  return /^claude-(opus|sonnet)-4$/.test(dashed) ? `${dashed}-0` : dashed;
}

/** A redirect would take the key along to wherever it leads. */
const withoutDetours: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: "manual" });
  if (response.status < 300 || response.status >= 400) return response;
  await response.body?.cancel();
  const to = response.headers.get("location") ?? "elsewhere";
  throw new Failure("model.refused", `the address answers with a redirect to ${to}`, { hint: "Write that address as base_url." });
};
