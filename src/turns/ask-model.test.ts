import { expect, test } from "vitest";
import type { Model, ModelChunk } from "../kernel/model.ts";
import { askModel, type Emit } from "./ask-model.ts";

const context = { system: null, messages: [{ role: "user" as const, text: "?" }] };
const model = (stream: (signal: AbortSignal) => AsyncGenerator<ModelChunk, void, void>): Model => ({
  name: "test/model",
  scripted: true,
  stream: (_request, signal) => stream(signal),
});
const ask = (asked: Model, emit: Emit, signal: AbortSignal) => askModel(asked, context, () => null, emit, signal);
const patient = new AbortController().signal;

test("the answer is what was streamed, and was emitted piece by piece", async () => {
  const emitted: string[] = [];
  const two = model(async function* () {
    yield { kind: "text", text: "one " };
    yield { kind: "text", text: "t\0wo" };
    yield { kind: "usage", usage: { inputTokens: 1, outputTokens: 2 } };
  });
  expect(await ask(two, (chunk) => emitted.push(chunk.kind === "text" ? chunk.text : chunk.kind), patient)).toMatchObject({
    text: "one two",
    usage: { inputTokens: 1, outputTokens: 2 },
  });
  expect(emitted).toEqual(["one ", "two"]);
});

test("whatever a provider throws is the model's failure, and may be tried again", async () => {
  const broken = model(async function* () {
    yield { kind: "text", text: "one " };
    throw new TypeError("fetch failed");
  });
  await expect(ask(broken, () => {}, patient)).rejects.toMatchObject({
    code: "model.failed",
    message: "test/model failed: fetch failed",
  });
});

test("a model that does not stop is stopped", async () => {
  const endless = model(async function* () {
    while (true) yield { kind: "text", text: "x".repeat(10_000) };
  });
  await expect(ask(endless, () => {}, patient)).rejects.toMatchObject({ code: "model.failed" });
});

test("calls that no memory could hold are not taken, together or one by one", async () => {
  const call = (args: string, tool = "todo"): ModelChunk => ({ kind: "call", call: { id: "1", tool, args } });
  const many = model(async function* () {
    for (let count = 0; count < 20; count++) yield call(`{"a":"${"x".repeat(90_000)}"}`);
  });
  await expect(ask(many, () => {}, patient)).rejects.toMatchObject({ code: "model.failed" });
  const crowd = model(async function* () {
    for (let count = 0; count < 1_000; count++) yield call("{}");
  });
  await expect(ask(crowd, () => {}, patient)).rejects.toMatchObject({ code: "model.failed" });
  const long = model(async function* () {
    yield call("{}", "n".repeat(1_000_000));
  });
  expect((await ask(long, () => {}, patient)).calls[0]?.tool).toHaveLength(200);
});

test("brackets in a text are no depth, brackets in brackets are", async () => {
  const text = JSON.stringify({ log: '\u001b[31m\\"['.repeat(5_000) });
  const two = model(async function* () {
    yield { kind: "call", call: { id: "1", tool: "todo", args: text } };
    yield { kind: "call", call: { id: "2", tool: "todo", args: `{"a":${"[".repeat(201)}` } };
  });
  const { calls } = await ask(two, () => {}, patient);
  expect(calls[0]?.args).toBe(text);
  expect(calls[1]?.args).toMatch(/^too deeply nested/);
});

test("of an answer that begins anew nothing is left, not even that it was cut", async () => {
  const anew = model(async function* () {
    yield { kind: "text", text: "half" };
    yield { kind: "usage", usage: { inputTokens: 1, outputTokens: 2 }, cut: true };
    yield { kind: "restart", because: "it broke off" };
    yield { kind: "text", text: "whole" };
  });
  const response = await ask(anew, () => {}, patient);
  expect(response).toMatchObject({ text: "whole", usage: null });
  expect(response).not.toHaveProperty("cut");
});

test("an aborted turn has no answer, even from a model that does not listen", async () => {
  const stop = new AbortController();
  const deaf = model(async function* () {
    yield { kind: "text", text: "one" };
    stop.abort();
    yield { kind: "text", text: "two" };
  });
  await expect(ask(deaf, () => {}, stop.signal)).rejects.toMatchObject({ name: "AbortError" });
});
