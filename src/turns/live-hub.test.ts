import { setImmediate as nextTick } from "node:timers/promises";
import { expect, test } from "vitest";
import type { LiveChunk } from "../kernel/live.ts";
import { LiveHub } from "./live-hub.ts";

function listen(hub: LiveHub, run: string): { heard: LiveChunk[]; leave: () => Promise<void> } {
  const heard: LiveChunk[] = [];
  const end = new AbortController();
  const chunks = hub.listen(run, end.signal);
  const reading = (async () => {
    for await (const chunk of chunks) heard.push(chunk);
  })();
  return {
    heard,
    leave: async () => {
      await nextTick();
      end.abort();
      await reading;
    },
  };
}

const textOf = (heard: LiveChunk[]): string => heard.map((chunk) => (chunk.kind === "text" ? chunk.text : "|")).join("");

test("everybody who listens hears the text, and whoever comes late hears it from the beginning", async () => {
  const hub = new LiveHub();
  const early = listen(hub, "r");
  hub.begin("r");
  hub.publish("r", "one ");
  await nextTick();
  const late = listen(hub, "r");
  hub.publish("r", "two");
  await early.leave();
  await late.leave();
  expect([textOf(early.heard), textOf(late.heard)]).toEqual(["one two", "one two"]);
});

test("a new attempt voids the text that was heard, and says so only to those who heard any", async () => {
  const hub = new LiveHub();
  const end = hub.begin("r");
  const listener = listen(hub, "r");
  hub.publish("r", "wrong");
  await nextTick();
  end();
  hub.begin("r");
  hub.publish("r", "right");
  await listener.leave();
  expect(listener.heard).toEqual([{ kind: "text", text: "wrong" }, { kind: "restart" }, { kind: "text", text: "right" }]);
});

test("runs do not hear one another, and nothing is kept of a run that ended", async () => {
  const hub = new LiveHub();
  const other = listen(hub, "other");
  const end = hub.begin("r");
  hub.publish("r", "text");
  end();
  const after = listen(hub, "r");
  await after.leave();
  await other.leave();
  expect([...other.heard, ...after.heard]).toEqual([]);
});

test("an attempt that was overtaken ends nothing of the next one, however late it notices", async () => {
  const hub = new LiveHub();
  const overtaken = hub.begin("r");
  hub.publish("r", "old");
  const end = hub.begin("r");
  hub.publish("r", "begun ");
  overtaken();
  const late = listen(hub, "r");
  hub.publish("r", "and done");
  await late.leave();
  expect(textOf(late.heard)).toBe("begun and done");
  end();
  const after = listen(hub, "r");
  await after.leave();
  expect(after.heard).toEqual([]);
});

test("calls are seen in their order among the words, by those who come late too", async () => {
  const hub = new LiveHub();
  hub.begin("r");
  hub.publish("r", "let me ");
  hub.publish("r", "see");
  hub.publish("r", { kind: "call", place: 0, tool: "file_read", args: "notes.md" });
  hub.publish("r", { kind: "progress", place: 0, tool: "file_read", text: "a" });
  hub.publish("r", { kind: "progress", place: 0, tool: "file_read", text: "b" });
  hub.publish("r", { kind: "called", place: 0, tool: "file_read", failed: false, ms: 3, note: "" });
  hub.publish("r", "done");
  const late = listen(hub, "r");
  await late.leave();
  expect(late.heard.map(({ kind }) => kind)).toEqual(["text", "call", "progress", "called", "text"]);
  expect(late.heard[2]).toMatchObject({ text: "ab" });
});

test("an answer that begins anew voids its own words, not those before the calls", async () => {
  const hub = new LiveHub();
  hub.begin("r");
  const early = listen(hub, "r");
  hub.publish("r", "let me see");
  hub.publish("r", { kind: "call", place: 0, tool: "todo", args: "" });
  hub.publish("r", "wrong");
  await nextTick();
  hub.publish("r", { kind: "restart" });
  hub.publish("r", "right");
  const late = listen(hub, "r");
  await early.leave();
  await late.leave();
  expect(early.heard.map(({ kind }) => kind)).toEqual(["text", "call", "text", "restart", "text"]);
  expect(late.heard.map((chunk) => (chunk.kind === "text" ? chunk.text : chunk.kind))).toEqual(["let me see", "call", "right"]);
});

test("however much a turn shows, what is kept of it for others is bounded, and its last words are there", async () => {
  const hub = new LiveHub();
  hub.begin("r");
  const slow = new AbortController();
  const chunks = hub.listen("r", slow.signal);
  for (let step = 0; step < 2_000; step++) {
    hub.publish("r", { kind: "call", place: 0, tool: "terminal", args: "x".repeat(100) });
    hub.publish("r", { kind: "progress", place: 0, tool: "terminal", text: "y".repeat(10_000) });
    hub.publish("r", "z".repeat(1_000));
  }
  hub.publish("r", "the end");
  let seen = 0;
  let last = "";
  let characters = 0;
  const giveUp = setTimeout(() => slow.abort(), 100);
  for await (const chunk of chunks) {
    seen++;
    characters += JSON.stringify(chunk).length;
    if (chunk.kind === "text") last = chunk.text;
    if (last.endsWith("the end")) slow.abort();
  }
  clearTimeout(giveUp);
  expect(last.endsWith("the end")).toBe(true);
  expect(seen).toBeLessThanOrEqual(300);
  expect(characters).toBeLessThan(2_000_000);
});

test("an attempt that is over says nothing more, and leaves nothing behind", async () => {
  const hub = new LiveHub();
  const staying = listen(hub, "r");
  hub.begin("r")();
  hub.publish("r", "too late");
  await staying.leave();
  const after = listen(hub, "r");
  await after.leave();
  expect([...staying.heard, ...after.heard]).toEqual([]);
});

test("a listener that is slow hears all that was said before the end, in its order", async () => {
  const hub = new LiveHub();
  const end = new AbortController();
  const chunks = hub.listen("r", end.signal)[Symbol.asyncIterator]();
  hub.begin("r");
  hub.publish("r", "First I look. ");
  expect((await chunks.next()).value).toEqual({ kind: "text", text: "First I look. " });
  hub.publish("r", { kind: "call", place: 0, tool: "todo", args: "{}" });
  hub.publish("r", "Now I know.");
  end.abort();
  hub.publish("r", " Nobody hears this.");
  expect((await chunks.next()).value).toMatchObject({ kind: "call" });
  expect((await chunks.next()).value).toEqual({ kind: "text", text: "Now I know." });
  expect((await chunks.next()).done).toBe(true);
});
