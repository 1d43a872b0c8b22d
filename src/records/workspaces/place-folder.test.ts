import fc from "fast-check";
import { expect, test } from "vitest";
import { placeFolder } from "../../kernel/place-folder.ts";
import { Workspaces } from "./workspaces.ts";

const SEED = 20_261_115;
const place = { platform: "telegram", account: "default", chat: "-100123456", topic: "42" };

test("a chat and a topic have folders of their own, which can be recognized", () => {
  const folder = (workspaceScope: "agent" | "chat" | "topic", at: typeof place | null) =>
    Workspaces.folderOf({ id: "coder", workspaceScope }, at).join("/");
  expect(folder("agent", place)).toBe("agents/coder/workspace");
  expect(folder("chat", place)).toBe("agents/coder/workspaces/telegram+default+-100123456");
  expect(folder("topic", place)).toBe("agents/coder/workspaces/telegram+default+-100123456+42");
  expect(folder("topic", null)).toBe("agents/coder/workspace");
  expect(placeFolder({ ...place, topic: null }, "topic")).toBe("telegram+default+-100123456");
});

test("no two places share a folder, whatever their ids are, even where file names ignore case", () => {
  const id = fc.oneof(
    fc.string({ unit: "binary", maxLength: 80 }),
    fc.string({ maxLength: 8 }),
    fc.constantFrom("..", ".", "", "a/b", "a+b", "A", "a", "~41", "~~", "\ud800", "\ud801", "\ufffd", "x".repeat(500)),
  );
  const places = fc.record({ platform: id, account: id, chat: id, topic: fc.option(id) });
  fc.assert(
    fc.property(places, places, (one, other) => {
      const folder = placeFolder(one, "topic");
      expect(folder).toMatch(/^[a-z0-9_+~-]{3,250}$|^\+\+\+?$/);
      expect(folder.toLowerCase() === placeFolder(other, "topic").toLowerCase()).toBe(JSON.stringify(one) === JSON.stringify(other));
    }),
    { seed: SEED, numRuns: 500 },
  );
});
