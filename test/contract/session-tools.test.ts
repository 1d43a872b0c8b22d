import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sessionTools } from "../../src/abilities/tools/session/session-tools.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { type CalledFrom, ToolCaller } from "../tool-caller.ts";

describe.each(PLACES)("todo and clarify on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let tools: ToolCaller;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    tools = new ToolCaller(sessionTools(), {}, store);
  });
  afterEach(() => place.remove());

  const list = (from: CalledFrom = {}) => tools.text("todo", {}, from);

  test("a list is replaced as a whole, and shown compactly, also to a later turn", async () => {
    expect(await list()).toBe("The list is empty.");
    const items = [{ text: "read the\n[x] page", state: "done" }, { text: "write the answer", state: "doing" }, { text: "send it" }];
    const shown = "[x] read the [x] page\n[>] write the answer\n[ ] send it";
    expect(await tools.text("todo", { items })).toBe(shown);
    expect(await list()).toBe(shown);
    await tools.text("todo", { items: [] });
    expect(await list()).toBe("The list is empty.");
  });

  test("it belongs to one session and one epoch of it", async () => {
    await tools.text("todo", { items: [{ text: "mine" }] });
    expect(await list({ epoch: 2 })).toBe("The list is empty.");
    expect(await list({ address: { peer: "8", chat: "8" } })).toBe("The list is empty.");
    expect(await list()).toBe("[ ] mine");
  });

  test("too many items, too long ones and unknown states are refused", async () => {
    for (const items of [Array(51).fill({ text: "x" }), [{ text: "x".repeat(501) }], [{ text: "x", state: "maybe" }], [{}]])
      await expect(tools.call("todo", { items })).rejects.toMatchObject({ code: "tool.bad_arguments" });
    expect(await list()).toBe("The list is empty.");
  });

  test("a question ends the turn as its reply, with what may be answered", async () => {
    const question = { question: "Which one?", options: ["the red", "the blue"] };
    expect(await tools.call("clarify", question)).toMatchObject({ ends: "Which one?\n1. the red\n2. the blue" });
    expect(await tools.call("clarify", { question: "Why?" })).toMatchObject({ ends: "Why?" });
  });
});
