import { expect, test } from "vitest";
import type { LiveEvent } from "../contract/wire.ts";
import { argumentsInWords, ChatView } from "./chat-view.ts";

/** What stands on a screen that takes no colours and takes nothing back. */
function shown(events: readonly LiveEvent[], reply: string | null): string {
  let text = "";
  const screen = { write: (more: string) => (text += more) };
  const view = new ChatView(screen, screen);
  for (const event of events) view.see(event);
  view.end(reply);
  return text;
}

const called: LiveEvent = { kind: "called", place: 0, tool: "file_read", failed: false, ms: 12, note: "" };

test("words come as they are said, and a call is one line", () => {
  const events: LiveEvent[] = [
    { kind: "text", text: "Let me " },
    { kind: "text", text: "see." },
    { kind: "call", place: 0, tool: "file_read", args: '{"path":"notes.md"}' },
    { kind: "progress", place: 0, tool: "file_read", text: "line" },
    called,
    { kind: "text", text: "It is " },
  ];
  expect(shown(events, "It is empty.")).toBe("Let me see.\n· file_read notes.md  12 ms\nIt is empty.\n");
});

test("a call that failed says why, and nothing a tool says is obeyed by the terminal", () => {
  const failed: LiveEvent = { ...called, failed: true, note: "no such\x1b[2Jfile" };
  expect(shown([{ kind: "call", place: 0, tool: "file_read", args: "" }, failed], "Sorry.")).toBe(
    "· file_read  12 ms  no such[2Jfile\nSorry.\n",
  );
});

test("what was committed has the last word", () => {
  expect(shown([{ kind: "text", text: "wrong" }, { kind: "restart" }, { kind: "text", text: "ri" }], "right")).toBe(
    "wrong\n(the answer starts again)\nright\n",
  );
  expect(shown([{ kind: "text", text: "wrong" }], "right")).toBe("wrong\nright\n");
  expect(shown([], null)).toBe("");
});

test("arguments are shown by their values", () => {
  expect(argumentsInWords('{"path":"a.txt","limit":3}')).toBe("a.txt 3");
  expect(argumentsInWords('{"key":"plan","value":"one \\"two\\"\\nthr…')).toBe('plan one "two" thr…');
  expect(argumentsInWords("{}")).toBe("");
  expect(argumentsInWords("not json")).toBe("not json");
});
