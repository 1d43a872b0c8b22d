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

test("an aborted turn has no answer, even from a model that does not listen", async () => {
  const stop = new AbortController();
  const deaf = model(async function* () {
    yield { kind: "text", text: "one" };
    stop.abort();
    yield { kind: "text", text: "two" };
  });
  await expect(ask(deaf, () => {}, stop.signal)).rejects.toMatchObject({ name: "AbortError" });
});
