import { expect, test } from "vitest";
import type { ModelMessage } from "../../../kernel/model.ts";
import { toPrompt } from "./to-prompt.ts";

const ASKED = { provider: "own", type: "openai-compatible", id: "m", seesImages: false } as const;
const work = (...ids: string[]): ModelMessage[] => [
  { role: "assistant", text: "", calls: ids.map((id) => ({ id, tool: "look", args: "{}" })) },
  { role: "tool", results: ids.map((id) => ({ id, tool: "look", text: "a bird", failed: false })) },
];

/** In the order of the prompt, each call's id beside that of its result. */
function idsOf(messages: readonly ModelMessage[]): [calls: string[], results: string[]] {
  const parts = toPrompt({ system: null, messages }, ASKED).flatMap(({ content }): readonly object[] =>
    typeof content === "string" ? [] : content,
  ) as readonly { readonly type: string; readonly toolCallId: string }[];
  const of = (type: string) => parts.flatMap((part) => (part.type === type ? [part.toolCallId] : []));
  return [of("tool-call"), of("tool-result")];
}

test("every call has an id of its own, and its result has the same", () => {
  const [calls, results] = idsOf([...work("0", "0_2"), ...work("0", "0"), ...work("0_2", "", "a/b")]);
  expect(calls).toEqual(["0", "0_2", "0_3", "0_4", "0_2_2", "call", "a_b"]);
  expect(results).toEqual(calls);
});

test("thousands of calls by the same id are told apart without looking through all of them each time", () => {
  // Looking through all of them each time would take longer than a test may.
  const [calls] = idsOf(Array.from({ length: 60_000 }, () => work("0")).flat());
  expect(new Set(calls).size).toBe(60_000);
});

test("a name that a model made up goes back as one that providers take, with its call and its result alike", () => {
  for (const tool of ["", "file.read", "tеrminal", "x".repeat(300), "mcp__files__read"]) {
    const messages: ModelMessage[] = [
      { role: "assistant", text: "", calls: [{ id: "1", tool, args: "{}" }] },
      { role: "tool", results: [{ id: "1", tool, text: "there is no such tool", failed: true }] },
    ];
    const parts = toPrompt({ system: null, messages }, ASKED).flatMap(
      ({ content }) => content as readonly { readonly toolName?: string }[],
    );
    const [called, answered] = parts.map(({ toolName }) => toolName);
    expect(called).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(answered).toBe(called);
    if (tool.startsWith("mcp")) expect(called).toBe(tool);
  }
});
