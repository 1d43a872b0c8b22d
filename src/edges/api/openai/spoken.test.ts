import { expect, test } from "vitest";
import type { LiveChunk } from "../../../kernel/live.ts";
import { Spoken } from "./spoken.ts";

/** What a client reads, and whether it was told something that is not the answer. */
function heard(chunks: readonly (string | LiveChunk)[], reply: string): { text: string; spoiled: boolean } {
  const spoken = new Spoken();
  let text = "";
  const add = (words: ReturnType<Spoken["hear"]>): void => {
    if (words) text += words.fresh ? `|${words.text}` : words.text;
  };
  for (const chunk of chunks) add(spoken.hear(typeof chunk === "string" ? { kind: "text", text: chunk } : chunk));
  add(spoken.rest(reply));
  return { text, spoiled: spoken.spoiled };
}

const restart: LiveChunk = { kind: "restart" };
const call: LiveChunk = { kind: "call", place: 0, tool: "todo", args: "" };

test("pieces add up to the answer, and what was not heard comes at the end", () => {
  expect(heard(["a", "b"], "abc")).toEqual({ text: "abc", spoiled: false });
  expect(heard([], "abc")).toEqual({ text: "abc", spoiled: false });
  expect(heard(["abc\n"], "abc")).toEqual({ text: "abc\n", spoiled: false });
});

test("an answer that begins anew with the same words goes on", () => {
  expect(heard(["ab", restart, "a", "bcd"], "abcd")).toEqual({ text: "abcd", spoiled: false });
});

test("an answer that begins anew with other words was not the one that was sent", () => {
  expect(heard(["ab", restart, "xy"], "xy").spoiled).toBe(true);
  expect(heard(["ab", restart, "xy", call, "done"], "done").spoiled).toBe(true);
});

test("what is said before a call of a tool stays, and what comes after it is apart", () => {
  expect(heard(["let me see", call, "it is ", "7"], "it is 7")).toEqual({ text: "let me see|it is 7", spoiled: false });
  expect(heard([call, "7"], "7")).toEqual({ text: "7", spoiled: false });
  expect(heard(["let me see", call], "")).toEqual({ text: "let me see", spoiled: false });
});
