import { expect, test } from "vitest";
import type { Model, ModelChunk, ModelRequest } from "../../kernel/model.ts";
import { Redaction } from "../../kernel/redact.ts";
import { redactedModels } from "./redacted-models.ts";

/** Answers in pieces of three characters, and remembers what it was asked. */
function parrot(answer: string, asked: ModelRequest[] = []): Model {
  return {
    name: "test/parrot",
    scripted: true,
    async *stream(request): AsyncGenerator<ModelChunk, void, void> {
      asked.push(request);
      if (answer.startsWith("fail")) throw new Error(answer);
      for (const text of answer.match(/.{1,3}/g) ?? []) yield { kind: "text", text };
      yield { kind: "usage", usage: { inputTokens: 1, outputTokens: 2 } };
    },
  };
}

function through(model: Model): Model {
  const redaction = new Redaction();
  redaction.add([["KEY", "sk-12345678"]]);
  return redactedModels({ resolve: () => model }, redaction).resolve(model.name);
}

async function textOf(chunks: AsyncIterable<ModelChunk>): Promise<string> {
  let text = "";
  for await (const chunk of chunks)
    text += chunk.kind === "text" ? chunk.text : chunk.kind === "usage" ? `|${chunk.usage.outputTokens}` : "";
  return text;
}

const QUESTION: ModelRequest = { system: "keep sk-12345678", messages: [{ role: "user", text: "what is sk-12345678?" }] };

test("a model is asked without secrets, and answers without them, however the answer is cut", async () => {
  const asked: ModelRequest[] = [];
  const model = through(parrot("it is sk-12345678, or sk-1234", asked));
  expect(await textOf(model.stream(QUESTION, new AbortController().signal))).toMatch(
    /^it is \[secret KEY\], or sk-1234\|2$|^it is \[secret KEY\], or \|2sk-1234$/,
  );
  expect(asked).toEqual([{ system: "keep [secret KEY]", messages: [{ role: "user", text: "what is [secret KEY]?" }] }]);
});

test("what a provider says when it fails holds none either", async () => {
  const model = through(parrot("fail: the key sk-12345678 is not valid"));
  await expect(textOf(model.stream(QUESTION, new AbortController().signal))).rejects.toThrow("fail: the key [secret KEY] is not valid");
});

test("calls are made without them, and their results are told without them; what a provider has signed stays as it is", async () => {
  const asked: ModelRequest[] = [];
  const call = { id: "1", tool: "look", args: '{"key":"sk-12345678"}' };
  const signed = { signature: "sk-12345678" };
  const model = through({
    name: "test/caller",
    scripted: true,
    async *stream(request) {
      asked.push(request);
      yield { kind: "call", call };
      yield { kind: "opaque", data: signed };
    },
  });
  const messages: ModelRequest["messages"] = [
    { role: "assistant", text: "", calls: [call], opaque: signed },
    { role: "tool", results: [{ id: "1", tool: "look", text: "it is sk-12345678", failed: false }] },
  ];
  const chunks: ModelChunk[] = [];
  for await (const chunk of model.stream({ system: null, recalled: "sk-12345678", messages }, new AbortController().signal))
    chunks.push(chunk);
  const clean = { ...call, args: '{"key":"[secret KEY]"}' };
  expect(chunks).toEqual([
    { kind: "call", call: clean },
    { kind: "opaque", data: signed },
  ]);
  expect(asked).toEqual([
    {
      system: null,
      recalled: "[secret KEY]",
      messages: [
        { role: "assistant", text: "", calls: [clean], opaque: signed },
        { role: "tool", results: [{ id: "1", tool: "look", text: "it is [secret KEY]", failed: false }] },
      ],
    },
  ]);
});

test("what was held back when an answer broke off is not said in the next one", async () => {
  const model = through({
    name: "test/twice",
    scripted: true,
    async *stream() {
      yield { kind: "text", text: "no: sk-1234" };
      yield { kind: "restart", because: "broken with sk-12345678" };
      yield { kind: "text", text: "5678 it is" };
    },
  });
  const chunks: ModelChunk[] = [];
  for await (const chunk of model.stream(QUESTION, new AbortController().signal)) chunks.push(chunk);
  const after = chunks.slice(chunks.findIndex(({ kind }) => kind === "restart"));
  expect(after[0]).toEqual({ kind: "restart", because: "broken with [secret KEY]" });
  expect(after.map((chunk) => (chunk.kind === "text" ? chunk.text : "")).join("")).toBe("5678 it is");
});
