import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import type { Run } from "../../src/contract/wire.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import { type ModelServer, modelServer } from "../model-server.ts";

/** The official client, a real daemon, and behind its agents a model that says what a test wants. */
const home = mkdtempSync(join(tmpdir(), "guildhall-openai-"));
let model: ModelServer;
let daemon: Daemon;
let operator: OpenAI;

beforeAll(async () => {
  model = await modelServer();
  writeFileSync(
    join(home, "guildhall.yaml"),
    `model: test/llava
providers: { test: { type: openai-compatible, base_url: "${model.url}" } }
personality: You are brief.
agents:
  main: {}
  coder: {}
  gone: { state: archived }
`,
  );
  daemon = await startDaemon({ home, port: 0, logLevel: "error", tools: [stock] });
  operator = client(daemon.operatorToken);
});
beforeEach(() => {
  model.requests.length = 0;
});
afterAll(async () => {
  await daemon.stop();
  await model.close();
  rmSync(home, { recursive: true, force: true });
});

function client(apiKey: string, options: object = {}): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${daemon.url}/v1`, maxRetries: 0, ...options });
}

async function api<Answer>(path: string, init: RequestInit = {}, token = daemon.operatorToken): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...init.headers };
  return (await (await fetch(`${daemon.url}${path}`, { ...init, headers })).json()) as Answer;
}

async function tokenOf(scope: string): Promise<string> {
  const { token } = await api<{ token: string }>("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
  return token;
}

/** A tool of the agent's own. */
const stock = defineTool({
  name: "stock_count",
  description: "How many there are",
  parameters: z.object({ thing: z.string() }),
  effect: "pure",
  run: ({ thing }) => ({ output: `7 ${thing}` }),
});

const weather = {
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const hello = { model: "main", messages: [{ role: "user" as const, content: "hello" }] };

test("an agent answers as a model does, with the numbers of what it took", async () => {
  model.play([{ text: "Good morning.", usage: { input: 21, output: 3, cached: 8 } }]);
  const answer = await operator.chat.completions.create({
    model: "main",
    temperature: 0.5,
    max_completion_tokens: 50,
    stop: ["END"],
    seed: 7,
    messages: [
      { role: "system", content: "Speak like a sailor." },
      { role: "user", content: "first" },
      { role: "assistant", content: "second" },
      { role: "user", content: [{ type: "text", text: "third" }] },
    ],
  });
  expect(answer).toMatchObject({
    object: "chat.completion",
    model: "main",
    choices: [{ index: 0, message: { role: "assistant", content: "Good morning." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 21, completion_tokens: 3, total_tokens: 24, prompt_tokens_details: { cached_tokens: 8 } },
  });
  const { body } = model.requests[0] as ModelServer["requests"][number];
  expect(body).toMatchObject({ temperature: 0.5, stop: ["END"], seed: 7 });
  expect(body.max_tokens ?? body.max_completion_tokens).toBe(50);
  const [system, ...said] = body.messages;
  expect(system.content).toMatch(/You are brief\.[\s\S]*Speak like a sailor\./);
  expect(said.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant", "user"]);
});

test("a streamed answer comes in pieces and is the same answer; its usage comes last where it is asked for", async () => {
  model.play([{ text: ["Good ", "mor", "ning."], chunkDelayMs: 20 }]);
  const stream = await operator.chat.completions.create({ ...hello, stream: true, stream_options: { include_usage: true } });
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const pieces = chunks.flatMap(({ choices }) => (choices[0]?.delta.content ? [choices[0].delta.content] : []));
  expect(pieces.length).toBeGreaterThan(1);
  expect(pieces.join("")).toBe("Good morning.");
  expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
  expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("stop");
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
});

test("calls of the caller's tools are the caller's to make, and their results go back with the next request", async () => {
  model.play([{ text: "Let me see.", calls: [{ tool: "get_weather", args: { city: "Oslo" }, id: "call_1" }] }, "It rains in Oslo."]);
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "How is the weather in Oslo?" }];
  const first = await operator.chat.completions.create({ model: "main", messages, tools: [weather] });
  const [choice] = first.choices;
  expect(choice).toMatchObject({
    finish_reason: "tool_calls",
    message: { tool_calls: [{ type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }] },
  });
  const offered = model.requests[0]?.body.tools.map((tool: typeof weather) => tool.function.name);
  expect(offered).toContain("get_weather");
  expect(offered).toContain("stock_count");
  const call = choice?.message.tool_calls?.[0] as OpenAI.ChatCompletionMessageToolCall;
  messages.push(choice?.message as OpenAI.ChatCompletionMessage, { role: "tool", tool_call_id: call.id, content: "rain" });
  const second = await operator.chat.completions.create({ model: "main", messages, tools: [weather] });
  expect(second.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "It rains in Oslo." } });
  const told = model.requests[1]?.body.messages.slice(-3);
  expect(told).toMatchObject([
    { role: "user" },
    { role: "assistant", tool_calls: [{ function: { name: "get_weather" } }] },
    { role: "tool", content: "rain" },
  ]);
});

test("the client's own runner of tools works over a stream", async () => {
  model.play([
    {
      calls: [
        { tool: "get_weather", args: { city: "Oslo" } },
        { tool: "get_weather", args: { city: "Rome" } },
      ],
    },
    "Rain and sun.",
  ]);
  const cities: string[] = [];
  const runner = operator.chat.completions.runTools({
    ...hello,
    stream: true,
    tools: [
      {
        type: "function",
        function: {
          ...weather.function,
          parse: JSON.parse,
          function: ({ city }: { city: string }) => {
            cities.push(city);
            return city === "Oslo" ? "rain" : "sun";
          },
        },
      },
    ],
  });
  expect(await runner.finalContent()).toBe("Rain and sun.");
  expect(cities).toEqual(["Oslo", "Rome"]);
});

test("the agent's own tools are made by the agent, and the caller sees the answer only", async () => {
  model.play([{ text: "One moment.", calls: [{ tool: "stock_count", args: { thing: "apples" } }] }, "Seven apples."]);
  const answer = await operator.chat.completions.create(hello);
  expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "Seven apples." } });
  expect(answer.choices[0]?.message.tool_calls).toBeUndefined();
  expect(model.requests[1]?.body.messages.at(-1)).toMatchObject({ role: "tool", content: "7 apples" });
  expect(answer.usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 10 });
});

test("an answer that reached its limit says so", async () => {
  model.play([{ text: "Once upon a", finish: "length" }]);
  expect((await operator.chat.completions.create(hello)).choices[0]?.finish_reason).toBe("length");
});

test("errors are those that the client knows, each with its status", async () => {
  await expect(client("wrong").chat.completions.create(hello)).rejects.toMatchObject({
    status: 401,
    code: "invalid_api_key",
    constructor: OpenAI.AuthenticationError,
  });
  await expect(client(await tokenOf("read")).models.list()).rejects.toMatchObject({ status: 403, type: "permission_error" });
  await expect(operator.chat.completions.create({ ...hello, model: "nobody" })).rejects.toMatchObject({
    status: 404,
    code: "model_not_found",
    param: "model",
  });
  await expect(operator.chat.completions.create({ ...hello, n: 2 })).rejects.toMatchObject({ status: 400, param: "n" });
  await expect(operator.chat.completions.create({ ...hello, model: "gone" })).rejects.toMatchObject({
    status: 409,
    code: "agent.archived",
  });
  const remote = { type: "image_url" as const, image_url: { url: "https://example.org/a.png" } };
  await expect(operator.chat.completions.create({ model: "main", messages: [{ role: "user", content: [remote] }] })).rejects.toMatchObject({
    status: 400,
    param: "messages[0].content[0].image_url",
    message: expect.stringContaining("data: URLs only"),
  });
  await expect(
    operator.chat.completions.create({ model: "main", messages: [{ role: "tool", tool_call_id: "x", content: "" }] }),
  ).rejects.toMatchObject({ status: 400, param: "messages[0].tool_call_id" });
  await expect(operator.chat.completions.create({ model: "main", messages: "hello" as never })).rejects.toMatchObject({
    status: 400,
    param: "messages",
  });
  await expect(operator.get("/nothing")).rejects.toMatchObject({ status: 404, type: "invalid_request_error" });
  const broken = await fetch(`${daemon.url}/v1/chat/completions`, {
    method: "POST",
    body: '{"model":',
    headers: { authorization: `Bearer ${daemon.operatorToken}` },
  });
  expect(broken.status).toBe(400);
  expect(await broken.json()).toEqual({
    error: { message: "the body is not JSON", type: "invalid_request_error", param: null, code: "request.malformed" },
  });
  const large = { ...hello, messages: [{ role: "user" as const, content: "x".repeat(9 * 1024 * 1024) }] };
  await expect(operator.chat.completions.create(large)).rejects.toMatchObject({ status: 413 });
  const many = { ...hello, messages: Array.from({ length: 2_001 }, () => ({ role: "user" as const, content: "x" })) };
  await expect(operator.chat.completions.create(many)).rejects.toMatchObject({ status: 400, param: "messages" });
  const tools = Array.from({ length: 129 }, (_, index) => ({ type: "function" as const, function: { name: `t${index}` } }));
  await expect(operator.chat.completions.create({ ...hello, tools })).rejects.toMatchObject({ status: 400, param: "tools" });
  expect(model.requests).toEqual([]);
});

test("a model that fails is a server's error, and in a stream an error too", async () => {
  model.play(() => ({ status: 400, error: "no such thing" }));
  await expect(operator.chat.completions.create(hello)).rejects.toMatchObject({ status: 502, type: "server_error" });
  const stream = await operator.chat.completions.create({ ...hello, stream: true });
  await expect(
    (async () => {
      for await (const _ of stream);
    })(),
  ).rejects.toThrow(/no such thing/);
});

test("a token of an agent uses that agent and sees no other", async () => {
  const coder = client(await tokenOf("agent:coder"));
  model.play(["Mine."]);
  expect((await operator.models.list()).data.map(({ id }) => id)).toEqual(["main", "coder"]);
  expect((await coder.models.list()).data).toEqual([{ id: "coder", object: "model", created: 0, owned_by: "guildhall" }]);
  expect(await coder.models.retrieve("coder")).toMatchObject({ id: "coder" });
  await expect(coder.models.retrieve("main")).rejects.toMatchObject({ status: 404, code: "model_not_found" });
  await expect(coder.chat.completions.create(hello)).rejects.toMatchObject({ status: 404, code: "model_not_found" });
  expect((await coder.chat.completions.create({ ...hello, model: "coder" })).choices[0]?.message.content).toBe("Mine.");
});

test("without a session nothing stays; with one the conversation goes on, and only the new message counts", async () => {
  model.play((_request, count) => `answer ${count}`);
  await operator.chat.completions.create(hello);
  expect(await api("/api/sessions?prefix=agent:main:openai")).toMatchObject({ sessions: [] });
  const session = { headers: { "X-Guildhall-Session": "trip" } };
  await operator.chat.completions.create({ model: "main", messages: [{ role: "user", content: "one" }] }, session);
  await operator.chat.completions.create(
    {
      model: "main",
      messages: [
        { role: "user", content: "made up" },
        { role: "assistant", content: "never said" },
        { role: "user", content: "two" },
      ],
    },
    session,
  );
  const said = model.requests.at(-1)?.body.messages.filter(({ role }: { role: string }) => role !== "system");
  expect(said.map(({ content }: { content: string }) => content)).toEqual(["one", "answer 1", "two"]);
  const { sessions } = await api<{ sessions: { key: string; messages: number }[] }>("/api/sessions?prefix=agent:main:openai");
  expect(sessions).toMatchObject([{ key: "agent:main:openai:channel:trip", messages: 2 }]);
  const byKey = { headers: { "X-Guildhall-Session": "agent:main:openai:channel:trip" } };
  await operator.chat.completions.create({ model: "main", messages: [{ role: "user", content: "three" }] }, byKey);
  expect(model.requests.at(-1)?.body.messages.filter(({ role }: { role: string }) => role !== "system")).toHaveLength(5);
  await expect(operator.chat.completions.create({ ...hello, model: "coder" }, byKey)).rejects.toMatchObject({ status: 400 });
  await expect(operator.chat.completions.create(hello, { headers: { "X-Guildhall-Session": "agent:main:nowhere" } })).rejects.toMatchObject(
    { status: 404 },
  );
  await expect(operator.chat.completions.create({ ...hello, tools: [weather] }, session)).rejects.toMatchObject({ param: "tools" });
});

test("the same key is one run, for one caller and one request", async () => {
  model.play((_request, count) => `answer ${count}`);
  const once = { headers: { "Idempotency-Key": "k1" } };
  const [first, again] = [await operator.chat.completions.create(hello, once), await operator.chat.completions.create(hello, once)];
  expect(again).toEqual(first);
  expect(model.requests).toHaveLength(1);
  const other = { ...hello, messages: [{ role: "user" as const, content: "other" }] };
  await expect(operator.chat.completions.create(other, once)).rejects.toMatchObject({ status: 409, code: "request.key_reused" });
  const main = client(await tokenOf("agent:main"));
  expect((await main.chat.completions.create(hello, once)).id).not.toBe(first.id);
});

test("whoever leaves does not end the run, unless he said so beforehand", async () => {
  const leave = async (headers: Record<string, string>): Promise<Run> => {
    model.play([{ text: ["begun ", "and ", "done"], chunkDelayMs: 150 }]);
    const stop = new AbortController();
    const { data: stream, response } = await operator.chat.completions
      .create({ ...hello, stream: true }, { headers, signal: stop.signal })
      .withResponse();
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) stop.abort();
    const id = response.headers.get("x-guildhall-run") as string;
    await fetch(`${daemon.url}/api/runs/${id}/live`, { headers: { authorization: `Bearer ${daemon.operatorToken}` } }).then((live) =>
      live.text(),
    );
    return api<Run>(`/api/runs/${id}`);
  };
  expect(await leave({})).toMatchObject({ status: "completed", reply: { text: "begun and done" } });
  expect(await leave({ "X-Guildhall-On-Close": "stop" })).toMatchObject({ status: "failed", error: { code: "run.stopped" } });
});

test("responses: an answer, the next one on from it, and tools in both steps", async () => {
  model.play(["Good morning.", { calls: [{ tool: "get_weather", args: { city: "Oslo" } }] }, "Rain."]);
  const first = await operator.responses.create({ model: "main", input: "hello", instructions: "Speak like a sailor." });
  expect(first).toMatchObject({ status: "completed", output_text: "Good morning.", usage: { input_tokens: 10, total_tokens: 15 } });
  expect(model.requests[0]?.body.messages[0].content).toContain("Speak like a sailor.");
  const tools = [{ type: "function" as const, strict: false, ...weather.function }];
  const second = await operator.responses.create({ model: "main", input: "And the weather?", previous_response_id: first.id, tools });
  const call = second.output.find((item) => item.type === "function_call");
  expect(call).toMatchObject({ name: "get_weather", arguments: '{"city":"Oslo"}' });
  const said = model.requests[1]?.body.messages.filter(({ role }: { role: string }) => role !== "system");
  expect(said.map(({ content }: { content: string }) => content)).toEqual(["hello", "Good morning.", "And the weather?"]);
  const third = await operator.responses.create({
    model: "main",
    previous_response_id: second.id,
    input: [{ type: "function_call_output", call_id: call?.type === "function_call" ? call.call_id : "", output: "rain" }],
    tools,
  });
  expect(third.output_text).toBe("Rain.");
  await expect(operator.responses.create({ model: "coder", input: "x", previous_response_id: first.id })).rejects.toMatchObject({
    status: 404,
    param: "previous_response_id",
  });
  await expect(operator.responses.create({ model: "main", input: "x", tools: [{ type: "web_search" }] })).rejects.toMatchObject({
    status: 400,
    param: "tools[0].type",
  });
});

test("responses as a stream, with the whole response at its end", async () => {
  model.play([{ text: ["Good ", "morning."], chunkDelayMs: 20, calls: [{ tool: "get_weather", args: { city: "Oslo" } }] }]);
  const tools = [{ type: "function" as const, strict: false, ...weather.function }];
  const stream = operator.responses.stream({ model: "main", input: "hello", tools });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  const whole = await stream.finalResponse();
  expect(whole.output_text).toBe("Good morning.");
  expect(whole.output.map(({ type }) => type)).toEqual(["message", "function_call"]);
  expect(types[0]).toBe("response.created");
  expect(types).toContain("response.output_text.delta");
  expect(types).toContain("response.function_call_arguments.done");
  expect(types.at(-1)).toBe("response.completed");
});

test("an image reaches the model, and a wish for JSON too", async () => {
  model.play(['{"ok":true}']);
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const url = `data:image/png;base64,${pixel}`;
  await operator.chat.completions.create({
    model: "main",
    response_format: { type: "json_object" },
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "what is it?" },
          { type: "image_url", image_url: { url } },
        ],
      },
    ],
  });
  const { body } = model.requests[0] as ModelServer["requests"][number];
  expect(JSON.stringify(body.messages)).toContain(pixel);
  expect(body.response_format).toMatchObject({ type: "json_object" });
});

test("a model that breaks off and begins anew is not heard twice; one that then says something else is an error, and the answer is kept", async () => {
  const ask = async (headers: Record<string, string> = {}): Promise<string> => {
    const stream = await operator.chat.completions.create({ ...hello, stream: true }, { headers });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    return text;
  };
  model.play([{ text: ["Good ", "mor"], chunkDelayMs: 30, cutAfter: 2 }, "Good morning."]);
  expect(await ask()).toBe("Good morning.");
  model.play([{ text: ["Bad ", "mor"], chunkDelayMs: 30, cutAfter: 2 }, "Good morning."]);
  const headers = { "Idempotency-Key": "broken" };
  await expect(ask(headers)).rejects.toThrow(/given anew; the whole answer is that of run \w{20}/);
  expect(await ask(headers)).toBe("Good morning.");
  expect(model.requests).toHaveLength(4);
});

test("the program in the guide does what it says", async () => {
  const [, program = ""] = /```js\n([\s\S]+?)```/.exec(readFileSync(new URL("../../docs/openai.md", import.meta.url), "utf8")) ?? [];
  model.play(["Good morning."]);
  const env = { ...process.env, OPENAI_BASE_URL: `${daemon.url}/v1`, OPENAI_API_KEY: daemon.operatorToken };
  const cwd = new URL("../..", import.meta.url).pathname;
  const child = spawn(process.execPath, ["--input-type=module"], { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(program);
  let said = "";
  child.stdout.on("data", (data) => {
    said += data;
  });
  expect(await new Promise((resolve) => child.once("close", resolve))).toBe(0);
  expect(said).toBe("Good morning.");
});
