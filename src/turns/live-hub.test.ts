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
