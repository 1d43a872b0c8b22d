import { expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { type ModelKeys, modelKeysOf } from "../../settings/model-keys.ts";
import { defaultModels, wantsLocalModel } from "./default-models.ts";

const around = (keys: Record<string, string>, config: object = {}, more: Partial<ModelKeys> = {}) => ({
  config: configSchema.parse(config),
  modelKeys: { ...modelKeysOf((name) => keys[name]), ...more },
});

test("the default is of the first well-known provider with a key, else local, else offline", () => {
  expect(defaultModels(around({}))).toEqual(["offline/demo"]);
  expect(defaultModels(around({}, {}, { localModel: "ollama/llama3" }))).toEqual(["ollama/llama3"]);
  expect(defaultModels(around({ OPENROUTER_API_KEY: "x" }, {}, { localModel: "ollama/llama3" }))[0]).toMatch(/^openrouter\//);
  expect(defaultModels(around({ OPENROUTER_API_KEY: "x", GEMINI_API_KEY: "y" }))[0]).toMatch(/^google\//);
  expect(defaultModels(around({ ANTHROPIC_API_KEY: "x", GEMINI_API_KEY: "y" }))[0]).toMatch(/^anthropic\//);
  expect(defaultModels(around({ ANTHROPIC_API_KEY: "  ", OPENAI_API_KEY: "x" }))[0]).toMatch(/^openai\//);
  expect(defaultModels(around({}, { providers: { anthropic: { api_key: "x" } } }))[0]).toMatch(/^anthropic\//);
});

test("nobody looks around on this machine where it would be of no use", () => {
  expect(wantsLocalModel(around({}))).toBe(true);
  expect(wantsLocalModel(around({ OPENAI_API_KEY: "x" }))).toBe(false);
  expect(wantsLocalModel(around({}, { model: "offline/demo" }))).toBe(false);
  expect(wantsLocalModel(around({}, { agents: { main: { model: "offline/demo" } } }))).toBe(false);
  expect(wantsLocalModel(around({}, { agents: { main: { model: "offline/demo" }, other: {} } }))).toBe(true);
  expect(wantsLocalModel(around({ GUILDHALL_LOCAL_MODELS: "off" }))).toBe(false);
});
