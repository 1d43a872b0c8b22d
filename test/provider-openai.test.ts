import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { modelsOf } from "../src/abilities/models/configured-models.ts";
import { type Config, configSchema } from "../src/contract/config.ts";
import type { Model, ModelChunk, ModelRequest } from "../src/kernel/model.ts";
import { settingsWithoutFile } from "../src/settings/load-settings.ts";
import { modelKeysOf } from "../src/settings/model-keys.ts";
import { type ModelServer, modelServer } from "./model-server.ts";

let server: ModelServer;
let other: ModelServer;
beforeEach(async () => {
  server = await modelServer();
  other = await modelServer();
});
afterEach(async () => {
  await server.close();
  await other.close();
});

const ASKED: ModelRequest = { system: "Be brief.", messages: [{ role: "user", text: "hello" }] };
const TOOLS = [{ name: "look", description: "Looks.", parameters: { type: "object", properties: { at: { type: "string" } } } }];

function model(names: string | string[] = "test/some-model", more: Partial<Config> | object = {}, patience = {}): Model {
  const providers = {
    test: { base_url: server.url, api_key: "key-of-test" },
    next: { base_url: other.url },
    openai: { base_url: server.url },
  };
  const config = configSchema.parse({ providers, ...more });
  const keys = modelKeysOf((name) => (name === "OPENAI_API_KEY" ? "key-of-openai" : undefined));
  return modelsOf(settingsWithoutFile(config, "/home", keys), { patience }).resolve(names);
}

async function chunksOf(asked: Model, request: ModelRequest = ASKED, signal = new AbortController().signal): Promise<ModelChunk[]> {
  const chunks: ModelChunk[] = [];
  for await (const chunk of asked.stream(request, signal)) chunks.push(chunk);
  return chunks;
}

const textOf = (chunks: readonly ModelChunk[]): string => chunks.map((chunk) => (chunk.kind === "text" ? chunk.text : "")).join("");
const kinds = (chunks: readonly ModelChunk[]): string[] => [...new Set(chunks.map(({ kind }) => kind))];

describe.each(["test/some-model", "openai/gpt-5.4"])("%s over chat completions", (name) => {
  test("text comes as it is made, with the count of tokens", async () => {
    server.play([{ text: ["Hel", "lo."], usage: { input: 100, output: 7, cached: 60 } }]);
    const chunks = await chunksOf(model(name));
    expect(chunks.filter(({ kind }) => kind !== "opaque")).toEqual([
      { kind: "text", text: "Hel" },
      { kind: "text", text: "lo." },
      { kind: "usage", usage: { inputTokens: 100, outputTokens: 7, cachedInputTokens: 60 }, model: name },
    ]);
    const { headers, body } = server.requests[0] as (typeof server.requests)[number];
    expect(headers.authorization).toBe(`Bearer ${name.startsWith("test") ? "key-of-test" : "key-of-openai"}`);
    expect(body).toMatchObject({
      model: name.split("/")[1],
      stream: true,
      messages: [{ content: "Be brief." }, { role: "user", content: "hello" }],
    });
  });

  test("parallel calls come whole, their arguments as they were written, JSON or not", async () => {
    const calls = [
      { tool: "look", args: { at: "the sky" }, id: "c1" },
      { tool: "look", args: '{"at": "the s', id: "c2" },
      { tool: "look", args: "", id: "c3" },
    ];
    server.play([{ text: "Let me look.", calls }]);
    const chunks = await chunksOf(model(name), { ...ASKED, tools: TOOLS });
    expect(chunks.flatMap((chunk) => (chunk.kind === "call" ? [chunk.call] : []))).toEqual([
      { id: "c1", tool: "look", args: '{"at":"the sky"}' },
      { id: "c2", tool: "look", args: '{"at": "the s' },
      { id: "c3", tool: "look", args: expect.stringMatching(/^(\{\})?$/) },
    ]);
    expect(server.requests[0]?.body.tools).toMatchObject([
      { type: "function", function: { name: "look", parameters: TOOLS[0]?.parameters } },
    ]);
  });

  test("a conversation goes back with calls and results, each call by an id of its own", async () => {
    server.play(["done"]);
    await chunksOf(model(name), {
      system: null,
      recalled: "The user likes tea.",
      messages: [
        { role: "user", text: "look" },
        { role: "assistant", text: "", calls: [{ id: "0", tool: "look", args: '{"at":"a"}' }] },
        { role: "tool", results: [{ id: "0", tool: "look", text: "a bird", failed: false }] },
        { role: "assistant", text: "again", calls: [{ id: "0", tool: "look", args: "{broken" }] },
        { role: "tool", results: [{ id: "0", tool: "look", text: "no JSON", failed: true }] },
      ],
      tools: TOOLS,
      settings: { temperature: 0.5, maxOutputTokens: 50, stop: ["END"], seed: 7, toolChoice: { tool: "look" }, json: true },
      cacheKey: "agent-1",
    });
    const { body } = server.requests[0] as (typeof server.requests)[number];
    expect(body.messages.slice(2)).toMatchObject([
      { role: "assistant", tool_calls: [{ id: "0", function: { name: "look", arguments: '{"at":"a"}' } }] },
      { role: "tool", tool_call_id: "0", content: "a bird" },
      { role: "assistant", content: "again", tool_calls: [{ id: "0_2", function: { arguments: '{"not_json":"{broken"}' } }] },
      { role: "tool", tool_call_id: "0_2", content: "no JSON" },
    ]);
    expect(body.messages[0]).toMatchObject({ content: "The user likes tea." });
    expect(body.tool_choice).toEqual({ type: "function", function: { name: "look" } });
    expect(body.response_format).toEqual({ type: "json_object" });
    if (name.startsWith("test")) expect(body).toMatchObject({ temperature: 0.5, max_tokens: 50, stop: ["END"], seed: 7 });
    else expect(body.prompt_cache_key).toBe("agent-1");
  });

  test("an answer that reached its limit says so", async () => {
    server.play([{ text: "half of", finish: "length" }]);
    expect((await chunksOf(model(name))).at(-1)).toMatchObject({ kind: "usage", cut: true });
  });

  test("what is wrong with the request is said at once, and not tried again", async () => {
    for (const [reply, code] of [
      [{ status: 400, error: "bad temperature" }, "model.refused"],
      [{ status: 400, error: "This model's maximum context length is 8192 tokens" }, "model.too_long"],
      [{ status: 401, error: "Incorrect API key" }, "model.no_key"],
      [{ status: 403, error: "not for you" }, "model.refused"],
      [{ status: 404, error: "The model `x` does not exist" }, "model.unknown"],
      [{ status: 429, error: "You exceeded your current quota" }, "model.refused"],
    ] as const) {
      server.play([reply]);
      const before = server.requests.length;
      await expect(chunksOf(model(name))).rejects.toMatchObject({ code, message: expect.stringContaining(reply.error) });
      expect(server.requests.length - before).toBe(1);
    }
  });

  test("an answer that breaks off is void and begins anew", async () => {
    server.play([{ text: ["wrong ", "way"], cutAfter: 2 }, "the right way"]);
    const chunks = await chunksOf(model(name));
    const at = chunks.findIndex(({ kind }) => kind === "restart");
    expect(textOf(chunks.slice(0, at))).toMatch(/^wrong /);
    expect(textOf(chunks.slice(at))).toBe("the right way");
  });

  test("so is one whose end never came, though the connection ended in order", async () => {
    const chunk = { choices: [{ index: 0, delta: { content: "half" }, finish_reason: null }] };
    server.play([{ raw: `data: ${JSON.stringify(chunk)}\n\n`, headers: { "content-type": "text/event-stream" } }, "whole"]);
    const chunks = await chunksOf(model(name));
    expect(kinds(chunks)).toContain("restart");
    expect(textOf(chunks)).toBe("halfwhole");
  });

  test("what is said in the middle of a stream counts as much as what is said before it", async () => {
    const headers = { "content-type": "text/event-stream" };
    const event = (error: object): string => `data: ${JSON.stringify({ error })}\n\n`;
    for (const [error, code] of [
      [{ message: "the request exceeds the available context size", type: "exceed_context_size_error", code: 400 }, "model.too_long"],
      [{ message: "the request exceeds the available context size", type: "server_error" }, "model.too_long"],
      [{ message: "No credit is left", code: 402 }, "model.refused"],
    ] as const) {
      server.play([{ raw: event(error), headers }, "not asked for"]);
      await expect(chunksOf(model(name))).rejects.toMatchObject({ code, message: expect.stringContaining(error.message) });
    }
    server.play([{ raw: event({ message: "Slow down", code: 429 }), headers }, "later"]);
    expect(textOf(await chunksOf(model(name)))).toBe("later");
  });

  test("an answer that its provider calls an error is none", async () => {
    const chunk = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    server.play([
      { raw: chunk({ content: "half" }, null) + chunk({}, "error"), headers: { "content-type": "text/event-stream" } },
      "whole",
    ]);
    const chunks = await chunksOf(model(name));
    expect(kinds(chunks)).toContain("restart");
    expect(textOf(chunks)).toBe("halfwhole");
  });

  test("a server that counts nothing is counted for", async () => {
    server.play([{ text: "x".repeat(400), usage: { input: 0, output: 0 } }]);
    expect((await chunksOf(model(name))).at(-1)).toMatchObject({ usage: { inputTokens: 4, outputTokens: 100 } });
  });

  test("429 is waited out as long as it asks, and 500 is tried again", async () => {
    server.play([{ status: 429, headers: { "retry-after-ms": "120" } }, { status: 500 }, "at last"]);
    const chunks = await chunksOf(model(name));
    expect(textOf(chunks)).toBe("at last");
    expect(kinds(chunks)).not.toContain("restart");
    const [first, second] = server.requests.map(({ at }) => at) as [number, number];
    expect(second - first).toBeGreaterThanOrEqual(115);
  });

  test("a stop ends it at once, and the connection with it", async () => {
    server.play([{ text: ["one ", "two"], hangAfter: 1 }]);
    const stop = new AbortController();
    const stream = model(name).stream(ASKED, stop.signal);
    expect(await stream.next()).toMatchObject({ value: { kind: "text" } });
    stop.abort(new Error("stopped by hand"));
    await expect(stream.next()).rejects.toThrow("stopped by hand");
    await expect.poll(() => server.requests[0]?.abandoned).toBe(true);
  });
});

// A machine that stands still in the wrong moment is silent too.
test("silence before and in the middle of an answer is not waited out", { retry: 2 }, async () => {
  server.play([{ text: "x", hangAfter: 0 }, { text: ["half", "more"], hangAfter: 1 }, "whole"]);
  const chunks = await chunksOf(model("test/m", {}, { firstMs: 200, idleMs: 200 }));
  expect(textOf(chunks)).toBe("halfwhole");
  await expect.poll(() => server.requests.map(({ abandoned }) => abandoned)).toEqual([true, true, false]);
});

test("the next of a chain answers where one cannot, and its name is told", async () => {
  server.play([{ status: 401 }]);
  other.play(["I am the other one"]);
  const chain = model(["test/first", "next/second"]);
  const chunks = await chunksOf(chain);
  expect(chain.name).toBe("test/first");
  expect(textOf(chunks)).toBe("I am the other one");
  expect(chunks.at(-1)).toMatchObject({ kind: "usage", model: "next/second" });
  expect(other.requests[0]?.headers.authorization).toBeUndefined();
});

test("where all of a chain fail, what each said is told", async () => {
  server.play([{ status: 403, error: "not you" }]);
  other.play([{ status: 400, error: "prompt is too long" }]);
  await expect(chunksOf(model(["test/first", "next/second"]))).rejects.toMatchObject({
    code: "model.too_long",
    message: expect.stringMatching(/test\/first: .*not you.*; next\/second: .*too long/),
  });
});

test("a model that thinks aloud is heard, and its thoughts go back with the work they began", async () => {
  server.play([{ reasoning: "I should look.", calls: [{ tool: "look", args: {}, id: "c" }] }, "seen"]);
  const chunks = await chunksOf(model(), { ...ASKED, tools: TOOLS });
  expect(textOf(chunks)).toBe("");
  const opaque = chunks.find((chunk) => chunk.kind === "opaque")?.data;
  const call = { id: "c", tool: "look", args: "{}" };
  const messages = [...ASKED.messages, { role: "assistant" as const, text: "", calls: [call], opaque }];
  await chunksOf(model(), {
    ...ASKED,
    tools: TOOLS,
    messages: [...messages, { role: "tool", results: [{ ...call, text: "x", failed: false }] }],
  });
  expect(server.requests[1]?.body.messages[2]).toMatchObject({ role: "assistant", reasoning_content: "I should look." });
});

test("images go to models that see, and a note to those that do not", async () => {
  const image = { mediaType: "image/png", data: "iVBORw0KGgo=" };
  const messages: ModelRequest["messages"] = [
    { role: "user", text: "what is this?", images: [image] },
    { role: "assistant", text: "", calls: [{ id: "c", tool: "look", args: "{}" }] },
    { role: "tool", results: [{ id: "c", tool: "look", text: "a picture", failed: false, images: [image] }] },
  ];
  server.play(["a", "b"]);
  await chunksOf(model("openai/gpt-5.4"), { system: null, messages });
  await chunksOf(model("test/blind"), { system: null, messages });
  const [seeing, blind] = server.requests.map(({ body }) => JSON.stringify(body.messages)) as [string, string];
  expect(seeing.split("data:image/png;base64,iVBORw0KGgo=").length - 1).toBe(2);
  expect(blind).not.toContain("iVBORw0KGgo");
  expect(blind.split("this model does not see images").length - 1).toBe(2);
});

test("no key goes along to where a server redirects", async () => {
  server.play([{ status: 307, headers: { location: `${other.url}/chat/completions` }, raw: "" }]);
  await expect(chunksOf(model())).rejects.toMatchObject({ code: "model.refused", message: expect.stringContaining("redirect") });
  expect(other.requests).toEqual([]);
});

test("a server that is not there is a failure that names its address", async () => {
  await server.close();
  await expect(chunksOf(model("test/m", {}, { attempts: 1 }))).rejects.toMatchObject({
    code: "model.failed",
    message: expect.stringContaining(`${server.url} cannot be reached (ECONNREFUSED)`),
  });
});
