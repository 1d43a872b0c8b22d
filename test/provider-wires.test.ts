import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Breaker } from "../src/abilities/models/breaker.ts";
import { modelsOf, systemTime } from "../src/abilities/models/configured-models.ts";
import { openProvider } from "../src/abilities/models/providers/open-provider.ts";
import { providerModel } from "../src/abilities/models/providers/provider-model.ts";
import { PATIENCE } from "../src/abilities/models/resilient-model.ts";
import { configSchema } from "../src/contract/config.ts";
import { Secret } from "../src/contract/secret.ts";
import type { Model, ModelChunk, ModelMessage, ModelRequest } from "../src/kernel/model.ts";
import { seededRandom } from "../src/kernel/random.ts";
import { settingsWithoutFile } from "../src/settings/load-settings.ts";
import { type ModelServer, modelServer, type ScriptedReply } from "./model-server.ts";

let server: ModelServer;
beforeEach(async () => {
  server = await modelServer();
});
afterEach(() => server.close());

const IMAGE = { mediaType: "image/png", data: "iVBORw0KGgo=" };
const TOOLS = [{ name: "look", description: "Looks.", parameters: { type: "object", properties: { at: { type: "string" } } } }];
const ASKED: ModelRequest = { system: "Be brief.", recalled: "Likes tea.", messages: [{ role: "user", text: "hello" }], tools: TOOLS };

/** At the bare address of the server, as somebody would write it. */
function model(type: string, id: string, patience = {}): Model {
  const providers = { own: { type, base_url: new URL(server.url).origin, api_key: "the-key" } };
  return modelsOf(settingsWithoutFile(configSchema.parse({ providers }), "/home"), { patience }).resolve(`own/${id}`);
}

async function chunksOf(asked: Model, request: ModelRequest = ASKED): Promise<ModelChunk[]> {
  const chunks: ModelChunk[] = [];
  for await (const chunk of asked.stream(request, new AbortController().signal)) chunks.push(chunk);
  return chunks;
}

const sse = (events: readonly object[], named = false): ScriptedReply => ({
  headers: { "content-type": "text/event-stream" },
  raw: events.map((event) => `${named ? `event: ${(event as { type: string }).type}\n` : ""}data: ${JSON.stringify(event)}\n\n`).join(""),
});
const textOf = (chunks: readonly ModelChunk[]): string => chunks.map((chunk) => (chunk.kind === "text" ? chunk.text : "")).join("");
const opaqueOf = (chunks: readonly ModelChunk[]): unknown => chunks.find((chunk) => chunk.kind === "opaque")?.data;
const callsOf = (chunks: readonly ModelChunk[]) => chunks.flatMap((chunk) => (chunk.kind === "call" ? [chunk.call] : []));

/** The conversation after an answer with a call, with what the provider gave beside it. */
function continued(chunks: readonly ModelChunk[], images: readonly (typeof IMAGE)[] = []): ModelRequest {
  const calls = callsOf(chunks);
  const said: ModelMessage = { role: "assistant", text: textOf(chunks), calls, opaque: opaqueOf(chunks) };
  const results = calls.map(({ id, tool }) => ({ id, tool, text: "a bird", failed: true, images }));
  return { ...ASKED, messages: [...ASKED.messages, said, { role: "tool", results }] };
}

describe("anthropic", () => {
  const start = {
    type: "message_start",
    message: {
      id: "m",
      type: "message",
      role: "assistant",
      model: "claude",
      content: [],
      usage: { input_tokens: 5, output_tokens: 1, cache_read_input_tokens: 90, cache_creation_input_tokens: 3 },
    },
  };
  const block = (index: number, content_block: object, ...deltas: object[]) => [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
  const end = (stop_reason: string) => [
    { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 12 } },
    { type: "message_stop" },
  ];
  const answer = (...events: object[]) => sse([start, ...events], true);
  const thinking = block(
    0,
    { type: "thinking", thinking: "" },
    { type: "thinking_delta", thinking: "Let me see." },
    { type: "signature_delta", signature: "sig-1" },
  );
  const text = (index: number, words: string) => block(index, { type: "text", text: "" }, { type: "text_delta", text: words });
  const use = (index: number, ...pieces: string[]) =>
    block(
      index,
      { type: "tool_use", id: "toolu_1", name: "look", input: {} },
      ...pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
    );

  test("text, calls and tokens come, and what it has signed goes back with the results", async () => {
    server.play([
      answer(...thinking, ...text(1, "I will look."), ...use(2, '{"at":', '"sky"}'), ...end("tool_use")),
      answer(...text(0, "A bird."), ...end("end_turn")),
    ]);
    const claude = model("anthropic", "claude-sonnet-4.5");
    const chunks = await chunksOf(claude);
    expect(textOf(chunks)).toBe("I will look.");
    expect(callsOf(chunks)).toEqual([{ id: "toolu_1", tool: "look", args: '{"at":"sky"}' }]);
    expect(chunks.at(-1)).toMatchObject({ kind: "usage", usage: { inputTokens: 98, outputTokens: 12, cachedInputTokens: 90 } });
    expect(textOf(await chunksOf(claude, continued(chunks, [IMAGE])))).toBe("A bird.");
    const [first, second] = server.requests as [(typeof server.requests)[number], (typeof server.requests)[number]];
    expect(first.path).toBe("/v1/messages");
    expect(first.headers["x-api-key"]).toBe("the-key");
    expect(first.body).toMatchObject({ model: "claude-sonnet-4-5", tools: [{ name: "look", input_schema: TOOLS[0]?.parameters }] });
    // What stays the same is kept at the provider, and so is the conversation so far; what is recalled stands between.
    expect(first.body.system).toEqual([
      { type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } },
      { type: "text", text: "Likes tea." },
    ]);
    expect(first.body.messages.at(-1).content).toEqual([{ type: "text", text: "hello", cache_control: { type: "ephemeral" } }]);
    expect(second.body.messages[1].content).toEqual([
      { type: "thinking", thinking: "Let me see.", signature: "sig-1" },
      { type: "text", text: "I will look." },
      { type: "tool_use", id: "toolu_1", name: "look", input: { at: "sky" } },
    ]);
    const [result] = second.body.messages[2].content;
    expect(result).toMatchObject({ type: "tool_result", tool_use_id: "toolu_1", cache_control: { type: "ephemeral" } });
    expect(JSON.stringify(result.content)).toContain("iVBORw0KGgo=");
  });

  test("thoughts are for the provider that thought them: another is not sent them", async () => {
    server.play([answer(...thinking, ...use(1, "{}"), ...end("tool_use")), "ok"]);
    const chunks = await chunksOf(model("anthropic", "claude-sonnet-4-5"));
    const elsewhere = { providers: { other: { base_url: server.url } } };
    await chunksOf(modelsOf(settingsWithoutFile(configSchema.parse(elsewhere), "/home")).resolve("other/m"), continued(chunks));
    expect(JSON.stringify(server.requests[1]?.body)).not.toMatch(/sig-1|Let me see/);
  });

  test("arguments that are no JSON come as they are; an answer that reached its limit says so", async () => {
    server.play([answer(...use(0, '{"at": "th'), ...end("max_tokens"))]);
    const chunks = await chunksOf(model("anthropic", "claude-sonnet-4-5"));
    expect(callsOf(chunks)[0]?.args).toBe('{"at": "th');
    expect(chunks.at(-1)).toMatchObject({ cut: true });
  });

  test("an answer that ends without its end begins anew, and so does one that the provider gives up", async () => {
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    server.play([answer(...text(0, "half")), answer(...text(0, "more"), overloaded), answer(...text(0, "whole"), ...end("end_turn"))]);
    const chunks = await chunksOf(model("anthropic", "claude-sonnet-4-5"));
    expect(chunks.filter(({ kind }) => kind === "restart").length).toBe(2);
    expect(textOf(chunks)).toBe("halfmorewhole");
  });

  // A machine that stands still in the wrong moment is silent too.
  test("signs of life between two parts of an answer keep it from being taken for silent", { retry: 2 }, async () => {
    const beats = Array.from({ length: 8 }, () => ({ type: "ping" }));
    const slow = { ...answer(...text(0, "I think"), ...beats, ...text(1, " so."), ...end("end_turn")), eventDelayMs: 60 };
    server.play([slow, "not asked for"]);
    const chunks = await chunksOf(model("anthropic", "claude-sonnet-4-5", { firstMs: 300, idleMs: 300, attempts: 1 }));
    expect(textOf(chunks)).toBe("I think so.");
  });

  test("words that are nothing but space are not sent back: it refuses them", async () => {
    server.play([answer(...text(0, "ok"), ...end("end_turn"))]);
    const call = { id: "c", tool: "look", args: "{}" };
    await chunksOf(model("anthropic", "claude-sonnet-4-5"), {
      ...ASKED,
      messages: [
        ...ASKED.messages,
        { role: "assistant", text: "\n\n", calls: [call] },
        { role: "tool", results: [{ ...call, text: "a bird", failed: false }] },
      ],
    });
    expect(server.requests[0]?.body.messages[1].content).toEqual([{ type: "tool_use", id: "c", name: "look", input: {} }]);
  });

  test("a prompt that is too long is one", async () => {
    const error = {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
    };
    server.play([{ status: 400, headers: { "content-type": "application/json" }, raw: JSON.stringify(error) }]);
    await expect(chunksOf(model("anthropic", "claude-sonnet-4-5"))).rejects.toMatchObject({ code: "model.too_long" });
  });
});

describe("google", () => {
  const parts = (list: object[], more: object = {}) => ({ candidates: [{ content: { role: "model", parts: list }, index: 0, ...more }] });
  const end = { finishReason: "STOP" };
  const usageMetadata = { promptTokenCount: 50, candidatesTokenCount: 4, cachedContentTokenCount: 20, totalTokenCount: 54 };

  test("text, calls, tokens and signatures", async () => {
    const call = { functionCall: { name: "look", args: { at: "sky" } }, thoughtSignature: "sig-2" };
    server.play([
      sse([parts([{ text: "I will " }]), parts([{ text: "look." }, call]), { ...parts([], end), usageMetadata }]),
      sse([{ ...parts([{ text: "A bird." }], end), usageMetadata }]),
    ]);
    const gemini = model("google", "gemini-3-flash-preview");
    const chunks = await chunksOf(gemini);
    expect(textOf(chunks)).toBe("I will look.");
    expect(callsOf(chunks)).toMatchObject([{ tool: "look", args: '{"at":"sky"}' }]);
    expect(chunks.at(-1)).toMatchObject({ usage: { inputTokens: 50, outputTokens: 4, cachedInputTokens: 20 } });
    expect(textOf(await chunksOf(gemini, continued(chunks, [IMAGE])))).toBe("A bird.");
    const [first, second] = server.requests as [(typeof server.requests)[number], (typeof server.requests)[number]];
    expect(first.path).toBe("/v1beta/models/gemini-3-flash-preview:streamGenerateContent");
    expect(first.headers["x-goog-api-key"]).toBe("the-key");
    expect(first.body.systemInstruction.parts.map(({ text }: { text: string }) => text).join("\n")).toBe("Be brief.\nLikes tea.");
    expect(JSON.stringify(second.body.contents)).toContain("sig-2");
    expect(JSON.stringify(second.body.contents)).toContain("iVBORw0KGgo=");
  });

  test("an answer that ends without its end begins anew", async () => {
    server.play([sse([parts([{ text: "half" }])]), sse([{ ...parts([{ text: "whole" }], end), usageMetadata }])]);
    const chunks = await chunksOf(model("google", "gemini-3-flash-preview"));
    expect(chunks.some(({ kind }) => kind === "restart")).toBe(true);
    expect(textOf(chunks)).toBe("halfwhole");
  });
});

test("openrouter speaks chat completions, and keeps the beginnings of Claude's conversations", async () => {
  server.play([{ text: "hi", calls: [{ tool: "look", args: { at: "sky" }, id: "c" }], usage: { input: 9, output: 3, cached: 4 } }]);
  const chunks = await chunksOf(model("openrouter", "anthropic/claude-opus-4.6"));
  expect(textOf(chunks)).toBe("hi");
  expect(callsOf(chunks)).toEqual([{ id: "c", tool: "look", args: '{"at":"sky"}' }]);
  expect(chunks.at(-1)).toMatchObject({ usage: { inputTokens: 9, outputTokens: 3, cachedInputTokens: 4 } });
  expect(server.requests[0]).toMatchObject({ path: "/api/v1/chat/completions", headers: { authorization: "Bearer the-key" } });
  expect(server.requests[0]?.body.messages[0].content[0]).toMatchObject({ text: "Be brief.", cache_control: { type: "ephemeral" } });
});

test("ollama is asked without a key, in one system message", async () => {
  server.play(["hi"]);
  const config = configSchema.parse({ providers: { ollama: { base_url: new URL(server.url).origin } } });
  await chunksOf(modelsOf(settingsWithoutFile(config, "/home")).resolve("ollama/llama3.2:3b"));
  expect(server.requests[0]?.headers.authorization).toBeUndefined();
  expect(server.requests[0]).toMatchObject({ path: "/v1/chat/completions", body: { model: "llama3.2:3b" } });
  expect(server.requests[0]?.body.messages[0]).toEqual({ role: "system", content: "Be brief.\n\nLikes tea." });
});

describe("openai itself", () => {
  /** Over responses, which only its own address is asked for. */
  function itself(): Model {
    const spec = {
      name: "openai",
      type: "openai" as const,
      baseUrl: server.url,
      apiKey: new Secret("the-key"),
      needsKey: true,
      isElsewhere: false,
    };
    const facts = { seesImages: true, price: null };
    const parts = { breaker: new Breaker(systemTime), patience: PATIENCE, time: systemTime, random: seededRandom(1) };
    return providerModel({ spec, id: "gpt-5.4", facts, open: () => openProvider(spec), ...parts });
  }
  const created = { type: "response.created", response: { id: "r", created_at: 1_800_000_000, model: "gpt-5.4" } };
  const usage = {
    input_tokens: 40,
    input_tokens_details: { cached_tokens: 30 },
    output_tokens: 6,
    output_tokens_details: { reasoning_tokens: 2 },
  };
  const completed = { type: "response.completed", response: { id: "r", usage } };
  const item = (output_index: number, added: object, done: object, ...between: object[]) => [
    { type: "response.output_item.added", output_index, item: added },
    ...between,
    { type: "response.output_item.done", output_index, item: done },
  ];
  const reasoning = item(
    0,
    { type: "reasoning", id: "rs_1", encrypted_content: null, summary: [] },
    { type: "reasoning", id: "rs_1", encrypted_content: "sealed-thought", summary: [] },
  );
  const called = { type: "function_call", id: "fc_1", call_id: "call_1", name: "look", arguments: '{"at":"sky"}', status: "completed" };
  const call = item(1, { ...called, arguments: "" }, called, {
    type: "response.function_call_arguments.delta",
    item_id: "fc_1",
    output_index: 1,
    delta: '{"at":"sky"}',
  });
  const message = (words: string) =>
    item(
      0,
      { type: "message", id: "msg_1" },
      { type: "message", id: "msg_1" },
      { type: "response.output_text.delta", item_id: "msg_1", delta: words },
    );

  test("keeps nothing there, and sends back what it has sealed", async () => {
    server.play([sse([created, ...reasoning, ...call, completed], true), sse([created, ...message("A bird."), completed], true)]);
    const chunks = await chunksOf(itself(), { ...ASKED, cacheKey: "agent-1" });
    expect(callsOf(chunks)).toEqual([{ id: "call_1", tool: "look", args: '{"at":"sky"}' }]);
    expect(chunks.at(-1)).toMatchObject({ usage: { inputTokens: 40, outputTokens: 6, cachedInputTokens: 30 } });
    expect(textOf(await chunksOf(itself(), continued(chunks)))).toBe("A bird.");
    const [first, second] = server.requests as [(typeof server.requests)[number], (typeof server.requests)[number]];
    expect(first.path).toBe("/v1/responses");
    expect(first.body).toMatchObject({ store: false, prompt_cache_key: "agent-1", include: ["reasoning.encrypted_content"] });
    const sent = JSON.stringify(second.body.input);
    expect(sent).toContain("sealed-thought");
    expect(second.body.input).toContainEqual(
      expect.objectContaining({ type: "function_call_output", call_id: "call_1", output: "a bird" }),
    );
  });

  test("an answer that ends without its end begins anew", async () => {
    server.play([sse([created, ...message("half")], true), sse([created, ...message("whole"), completed], true)]);
    expect(textOf(await chunksOf(itself()))).toBe("halfwhole");
  });
});
