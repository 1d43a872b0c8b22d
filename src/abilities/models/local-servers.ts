import { get } from "node:http";
import type { Settings } from "../../settings/load-settings.ts";
import { providerSpecs } from "./providers/provider-specs.ts";

/** A model that answers on this machine without a key. */
export interface LocalModel {
  /** `<provider>/<model>`. */
  readonly name: string;
  /** Of the server, for people. */
  readonly server: string;
}

const WITHIN_MS = 300;
const MAX_BYTES = 1_000_000;
const SERVERS = [
  { provider: "ollama", server: "Ollama" },
  { provider: "lmstudio", server: "LM Studio" },
] as const;
/** They turn texts into numbers, and answer nothing. */
const NO_CHAT = /embed|bge-|minilm|rerank|whisper/i;

/** Looks for Ollama and LM Studio, where they are by custom or where the config says, and never long. Ollama comes first. */
export async function findLocalModel(settings: Pick<Settings, "config" | "modelKeys">, withinMs = WITHIN_MS): Promise<LocalModel | null> {
  const specs = providerSpecs(settings);
  const found = await Promise.all(
    SERVERS.map(async ({ provider, server }) => {
      const id = await firstModel(specs.get(provider)?.baseUrl ?? "", withinMs);
      return id === null ? null : { name: `${provider}/${id}`, server };
    }),
  );
  return found.find((one) => one !== null) ?? null;
}

/** Both list what they have as OpenAI does. Plain HTTP: `fetch` would cost a start 20 ms before it asks anybody. */
async function firstModel(baseUrl: string, withinMs: number): Promise<string | null> {
  if (!baseUrl.startsWith("http://")) return null;
  const text = await new Promise<string>((resolve) => {
    const signal = AbortSignal.timeout(withinMs);
    const request = get(`${baseUrl}/models`, { signal, agent: false }, (response) => {
      let body = "";
      if (response.statusCode !== 200) response.resume().on("close", () => resolve(""));
      else
        response.setEncoding("utf8").on("data", (piece: string) => {
          body += piece;
          if (body.length > MAX_BYTES) request.destroy();
        });
      response.on("end", () => resolve(body)).on("error", () => resolve(""));
    });
    request.on("error", () => resolve("")).on("close", () => resolve(""));
  });
  return chatModelIn(text);
}

function chatModelIn(text: string): string | null {
  try {
    const { data } = JSON.parse(text) as { readonly data?: readonly { readonly id?: unknown }[] };
    const ids = (data ?? []).flatMap(({ id }) => (typeof id === "string" && /^\S{1,180}$/.test(id) ? [id] : []));
    return ids.find((id) => !NO_CHAT.test(id)) ?? null;
  } catch {
    return null;
  }
}
