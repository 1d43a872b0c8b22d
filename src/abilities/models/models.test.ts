import { expect, test } from "vitest";
import type { ModelRequest } from "../../kernel/model.ts";
import { modelRegistry } from "./model-registry.ts";
import { offlineProvider } from "./offline-model.ts";

const models = modelRegistry([offlineProvider]);

async function ask(...said: string[]): Promise<{ text: string; chunks: number; usage: unknown }> {
  const request: ModelRequest = { system: null, messages: said.map((text) => ({ role: "user", text })) };
  const result = { text: "", chunks: 0, usage: null as unknown };
  for await (const chunk of models.resolve("offline/demo").stream(request, new AbortController().signal)) {
    if (chunk.kind === "usage") result.usage = chunk.usage;
    else if (chunk.kind === "text") {
      result.text += chunk.text;
      result.chunks++;
    }
  }
  return result;
}

test("the offline model says that it is scripted, streams, and counts", async () => {
  const { text, chunks, usage } = await ask("hello");
  expect(text).toMatch(/^Hello! .*scripted/);
  expect(chunks).toBeGreaterThan(3);
  expect(usage).toEqual({ inputTokens: 2, outputTokens: Math.ceil(text.length / 4) });
});

test("the same conversation gets the same answer, and shows what it was told", async () => {
  expect(await ask("one", "the sky is blue")).toEqual(await ask("one", "the sky is blue"));
  expect((await ask("one", "the sky is blue")).text).toContain('You said: "the sky is blue". That was message 2');
  expect((await ask("x".repeat(5_000))).text.length).toBeLessThan(400);
});

test("it stops when it is told to", async () => {
  const stream = models.resolve("offline/demo").stream({ system: null, messages: [{ role: "user", text: "hello" }] }, AbortSignal.abort());
  await expect(stream.next()).rejects.toThrow();
});

test.each([
  ["ofline/demo", 'there is no provider "ofline" (did you mean "offline"?)'],
  ["offline/dmeo", 'has no model "dmeo" (did you mean "demo"?)'],
  ["nothing", 'there is no provider "nothing"'],
])("%s is unknown", (name, message) => {
  expect(() => models.resolve(name)).toThrow(expect.objectContaining({ code: "model.unknown", message: expect.stringContaining(message) }));
});
