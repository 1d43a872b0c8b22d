import { expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import type { Model } from "../../kernel/model.ts";
import { defaultModelOf } from "../../records/agents/default-models.ts";
import { settingsWithoutFile } from "../../settings/load-settings.ts";
import { modelKeysOf } from "../../settings/model-keys.ts";
import { configuredModels, modelsOf } from "./configured-models.ts";
import { anthropicId } from "./providers/open-provider.ts";
import { ollamaUrl, providerSpecs } from "./providers/provider-specs.ts";

const settings = (config: object, keys: Record<string, string> = {}) =>
  settingsWithoutFile(
    configSchema.parse(config),
    "/home",
    modelKeysOf((name) => keys[name]),
  );

test("well-known providers need their usual key and nothing else", () => {
  const keys = { OPENAI_API_KEY: "a", ANTHROPIC_API_KEY: "b", GEMINI_API_KEY: "c", OPENROUTER_API_KEY: "d" };
  for (const name of ["openai/gpt-5.4", "anthropic/claude-opus-4.6", "google/gemini-3-flash-preview", "openrouter/x/y", "ollama/llama3"])
    expect(modelsOf(settings({}, keys)).resolve(name)).toMatchObject({ name, scripted: false });
  expect(() => modelsOf(settings({})).resolve("openai/gpt-5.4")).toThrow(
    expect.objectContaining({ code: "model.no_key", hint: expect.stringContaining("OPENAI_API_KEY") }),
  );
  expect(modelsOf(settings({})).resolve("ollama/llama3").name).toBe("ollama/llama3");
});

test("a key goes to its own provider, or to where that was moved, and to nobody else", () => {
  const keys = { OPENAI_API_KEY: "the-key", ANTHROPIC_API_KEY: "other-key" };
  const providers = {
    openai: { base_url: "https://proxy.test/v1" },
    other: { type: "openai", base_url: "https://elsewhere.test/v1" },
    second: { type: "anthropic" },
    local: { base_url: "http://127.0.0.1:8000/v1", api_key: "own" },
  };
  const specs = providerSpecs(settings({ providers }, keys));
  const keyOf = (name: string) => specs.get(name)?.apiKey?.reveal() ?? null;
  expect(["openai", "other", "second", "local", "ollama"].map(keyOf)).toEqual(["the-key", null, "other-key", "own", null]);
  expect(specs.get("local")?.type).toBe("openai-compatible");
  expect(specs.get("openai")?.type).toBe("openai");
});

test("a key is taken without the space around it, and one that no header can hold is said before anybody is asked", () => {
  const keyed = (api_key: string) => settings({ providers: { local: { base_url: "http://127.0.0.1:1/v1", api_key } } });
  expect(providerSpecs(keyed(" own\n")).get("local")?.apiKey?.reveal()).toBe("own");
  expect(providerSpecs(keyed(" ")).get("local")?.apiKey).toBeNull();
  for (const broken of ["one\ntwo", "schlüssel", "“quoted”"])
    expect(() => modelsOf(keyed(broken)).resolve("local/m")).toThrow(expect.objectContaining({ code: "model.no_key" }));
});

test("a provider without an address cannot be used, and says what to write", () => {
  expect(() => modelsOf(settings({ providers: { local: {} } })).resolve("local/m")).toThrow(
    expect.objectContaining({ code: "model.unknown", hint: expect.stringContaining("base_url") }),
  );
});

test("of several, those that cannot be used are passed over, unless all cannot", () => {
  const models = modelsOf(settings({}));
  expect(models.resolve(["openai/gpt-5.4", "offline/demo"]).name).toBe("openai/gpt-5.4");
  expect(() => models.resolve(["openai/gpt-5.4", "nobody/knows"])).toThrow(expect.objectContaining({ code: "model.no_key" }));
  expect(models.resolve(["offline/demo", "offline/demo"])).toMatchObject({ name: "offline/demo", scripted: true });
});

test("one that cannot be used does not stand ready for another", () => {
  const hurried: string[] = [];
  const model = (id: string, hasNext?: boolean): Model => {
    if (hasNext) hurried.push(id);
    return { name: `own/${id}`, scripted: true, async *stream() {} };
  };
  const models = modelsOf(settings({}), { providers: [{ name: "own", model, models: () => [] }] });
  models.resolve(["own/a", "openai/gpt-5.4"]);
  expect(hurried).toEqual([]);
  models.resolve(["own/a", "openai/gpt-5.4", "own/b"]);
  expect(hurried).toEqual(["a"]);
});

test("a chain takes what the smallest takes, and costs what the dearest costs", () => {
  const keys = { OPENAI_API_KEY: "a", ANTHROPIC_API_KEY: "b" };
  const chain = modelsOf(settings({}, keys)).resolve(["anthropic/claude-sonnet-4.5", "openai/gpt-5.5", "ollama/x"]);
  expect(chain).toMatchObject({ contextTokens: 200_000, seesImages: true, price: { input: 5, output: 30 } });
});

test("prices: the config's, else those that are known; not what somebody else's server may ask", () => {
  const config = {
    prices: { "local/small": { input: 1, output: 2, cached_input: 0.1 }, "openai/gpt-5.4": { input: 9, output: 9 } },
    providers: { local: { base_url: "http://127.0.0.1:1/v1" } },
  };
  const { priceOf } = modelsOf(settings(config, { OPENAI_API_KEY: "a" }));
  expect(priceOf?.("local/small")).toEqual({ input: 1, output: 2, cachedInput: 0.1 });
  expect(priceOf?.("openai/gpt-5.4")).toEqual({ input: 9, output: 9 });
  expect(priceOf?.("openai/gpt-5.4-mini-2026-03-17")).toEqual({ input: 0.75, output: 4.5, cachedInput: 0.075 });
  expect(priceOf?.("anthropic/claude-opus-4.6")).toEqual({ input: 5, output: 25, cachedInput: 0.5 });
  expect(priceOf?.("openrouter/anthropic/claude-sonnet-4.5")).toEqual({ input: 3, output: 15, cachedInput: 0.3 });
  // Nobody who has only a key should meet a limit that cannot be counted.
  for (const provider of ["openai", "anthropic", "google"] as const) expect(priceOf?.(defaultModelOf(provider))).not.toBeNull();
  // Neither is as cheap as the one whose name it begins with.
  for (const dear of ["openai/o3-pro", "openai/o3-deep-research"]) expect(priceOf?.(dear)?.output).toBeGreaterThan(30);
  expect(priceOf?.("offline/demo")).toEqual({ input: 0, output: 0, cachedInput: 0 });
  expect(priceOf?.("ollama/llama3")).toMatchObject({ input: 0, output: 0 });
  for (const unknown of ["local/gpt-5.4", "openai/unheard-of", "nobody/knows"]) expect(priceOf?.(unknown)).toBeNull();
});

test("a new revision is taken at once", () => {
  let current = settings({});
  const models = configuredModels(() => current);
  expect(() => models.resolve("local/m")).toThrow('no provider "local"');
  current = settings({ providers: { local: { base_url: "http://127.0.0.1:1/v1" } }, prices: { "local/m": { input: 1, output: 1 } } });
  expect(models.resolve("local/m")).toMatchObject({ name: "local/m", price: { input: 1, output: 1 } });
  current = settings({});
  expect(() => models.resolve("local/m")).toThrow('no provider "local"');
});

test("providers of the program around us are there too", () => {
  const own: Model = { name: "own/m", scripted: true, async *stream() {} };
  const models = modelsOf(settings({}), { providers: [{ name: "own", model: () => own, models: () => ["m"] }] });
  expect(models.resolve("own/m")).toBe(own);
});

test("names are taken as people write them", () => {
  expect(["claude-opus-4.6", "claude-sonnet-4", "claude-opus-5-5", "some.thing"].map(anthropicId)).toEqual([
    "claude-opus-4-6",
    "claude-sonnet-4-0",
    "claude-opus-5-5",
    "some.thing",
  ]);
});

test.each([
  [null, "http://127.0.0.1:11434/v1"],
  ["0.0.0.0", "http://127.0.0.1:11434/v1"],
  ["0.0.0.0:9000", "http://127.0.0.1:9000/v1"],
  [":9000", "http://127.0.0.1:9000/v1"],
  ["gpu.lan", "http://gpu.lan:11434/v1"],
  ["http://gpu.lan:80", "http://gpu.lan/v1"],
  ["https://gpu.lan/ollama/v1/", "https://gpu.lan/ollama/v1"],
  ["not an address", "http://127.0.0.1:11434/v1"],
])("OLLAMA_HOST=%s is %s", (host, url) => {
  expect(ollamaUrl(host)).toBe(url);
});
