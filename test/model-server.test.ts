import OpenAI from "openai";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ModelServer, modelServer, type Script } from "./model-server.ts";

let server: ModelServer;
let openai: OpenAI;

beforeEach(async () => {
  server = await modelServer();
  openai = new OpenAI({ baseURL: server.url, apiKey: "test-key", maxRetries: 0 });
});

afterEach(() => server.close());

async function streamed(
  script: Script,
  signal?: AbortSignal,
): Promise<{ text: string; calls: Record<number, string>; finish: string; usage: unknown }> {
  server.play(script);
  const result = { text: "", calls: {} as Record<number, string>, finish: "", usage: null as unknown };
  const stream = await openai.chat.completions.create(
    { model: "m", messages: [{ role: "user", content: "hi" }], stream: true, stream_options: { include_usage: true } },
    { signal: signal ?? null },
  );
  for await (const chunk of stream) {
    const choice = chunk.choices[0];
    result.text += choice?.delta.content ?? "";
    for (const call of choice?.delta.tool_calls ?? [])
      result.calls[call.index] = (result.calls[call.index] ?? "") + (call.function?.name ?? "") + (call.function?.arguments ?? "");
    result.finish = choice?.finish_reason ?? result.finish;
    result.usage = chunk.usage ?? result.usage;
  }
  return result;
}

test("the official client reads text, parallel calls in pieces, and the count", async () => {
  const calls = [
    { tool: "one", args: { a: 1, b: [true] } },
    { tool: "two", args: '{"broken": ' },
  ];
  expect(await streamed([{ text: "let me see", calls, usage: { input: 7, output: 3, cached: 2 } }])).toMatchObject({
    text: "let me see",
    calls: { 0: 'one{"a":1,"b":[true]}', 1: 'two{"broken": ' },
    finish: "tool_calls",
    usage: { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } },
  });
  expect(server.requests[0]).toMatchObject({
    path: "/v1/chat/completions",
    headers: { authorization: "Bearer test-key" },
    body: { model: "m" },
  });
});

test("without streaming the same reply comes whole", async () => {
  server.play(["all at once"]);
  const { choices } = await openai.chat.completions.create({ model: "m", messages: [] });
  expect(choices[0]).toMatchObject({ message: { content: "all at once" }, finish_reason: "stop" });
});

test("it refuses, breaks off and stays silent as it is told", async () => {
  await expect(streamed([{ status: 429, headers: { "retry-after": "2" }, error: "slow down" }])).rejects.toMatchObject({ status: 429 });
  await expect(streamed([{ text: ["a", "b", "c"], cutAfter: 2 }])).rejects.toThrow();
  await expect(streamed([{ text: "never", hangAfter: 0 }], AbortSignal.timeout(100))).rejects.toThrow();
  // The official client ends quietly when it is told to stop in the middle.
  expect((await streamed([{ text: ["half", "more"], hangAfter: 1 }], AbortSignal.timeout(100)).catch(() => ({ text: "half" }))).text).toBe(
    "half",
  );
  await expect(streamed([])).rejects.toThrow("the script has no reply number 1");
  await server.seen(5);
  expect(server.requests.slice(1, 4).map(({ abandoned }) => abandoned)).toEqual([true, true, true]);
});
