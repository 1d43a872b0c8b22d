import { expect, test } from "vitest";
import { TokenCounter } from "./count-tokens.ts";
import { roomOf, tokensOfRequest, tokensOfText } from "./estimate.ts";

test("the estimate is near what a tokenizer counts, in several writing systems", async () => {
  const texts = [
    "The quick brown fox jumps over the lazy dog and runs away from it. ".repeat(40),
    "Der schnelle braune Fuchs springt über den faulen Hund und läuft davon. ".repeat(40),
    "人工智能正在改变我们的生活方式。".repeat(60),
    'const answer = request.messages.map(({ role }) => role).join(", ");\n'.repeat(40),
  ];
  const counted = await new TokenCounter().count(texts);
  for (const [index, text] of texts.entries()) {
    const ratio = tokensOfText(text) / (counted[index] as number);
    expect(ratio, text.slice(0, 20)).toBeGreaterThan(0.7);
    expect(ratio, text.slice(0, 20)).toBeLessThan(2);
  }
});

test("counting is bounded: a text without an end, marks of models, and too much", async () => {
  const counter = new TokenCounter();
  expect(await counter.count(["a".repeat(20_000), "<|endoftext|>"])).toEqual([expect.any(Number), expect.any(Number)]);
  const long = "x".repeat(3_000_000);
  expect(await counter.count([long])).toEqual([tokensOfText(long)]);
});

test("there is room for the answer, whatever the model says it takes", () => {
  for (const contextTokens of [2_000, 8_000, 128_000, 1_000_000]) {
    expect(roomOf({ contextTokens }, undefined)).toBeLessThan(contextTokens * 0.95);
    expect(roomOf({ contextTokens }, undefined)).toBeGreaterThan(contextTokens / 2);
  }
  expect(roomOf({}, undefined)).toBe(roomOf({ contextTokens: 128_000 }, undefined));
  expect(roomOf({ contextTokens: 100_000 }, 20_000)).toBe(72_000);
});

test("everything in a request counts", () => {
  const base = { system: null, messages: [] };
  const bigger = [
    { ...base, system: "x".repeat(400) },
    { ...base, recalled: "x".repeat(400) },
    { ...base, tools: [{ name: "t", description: "x".repeat(400), parameters: {} }] },
    { ...base, messages: [{ role: "user" as const, text: "x".repeat(400) }] },
    { ...base, messages: [{ role: "user" as const, text: "", images: [{ mediaType: "image/png", data: "" }] }] },
    { ...base, messages: [{ role: "assistant" as const, text: "", calls: [{ id: "1", tool: "t", args: "x".repeat(400) }] }] },
    { ...base, messages: [{ role: "tool" as const, results: [{ id: "1", tool: "t", text: "x".repeat(400), failed: false }] }] },
  ];
  for (const request of bigger) expect(tokensOfRequest(request)).toBeGreaterThanOrEqual(100);
});
