import { describe, expect, test } from "vitest";
import { binding } from "./bindings.ts";

const NOTHING = { account: null, guild: null, chat: null, topic: null, chatType: null, peer: null, roles: null };
const telegram = { ...NOTHING, agent: "a", platform: "telegram" };

describe("the short and the long form say the same", () => {
  test.each([
    [{ telegram: "-100" }, { ...telegram, chat: "-100" }],
    [{ match: { platform: "telegram", chat: "-100" } }, { ...telegram, chat: "-100" }],
    [{ telegram: "*" }, { ...telegram, chat: "*" }],
    [{ telegram: -100123456 }, { ...telegram, chat: "-100123456" }],
    [
      { telegram: -100, topic: 42 },
      { ...telegram, chat: "-100", topic: "42" },
    ],
    [{ match: { platform: "telegram", chat: -100, topic: 42 } }, { ...telegram, chat: "-100", topic: "42" }],
    [
      { telegram: "1", peer: 7, account: "work" },
      { ...telegram, chat: "1", peer: "7", account: "work" },
    ],
    [{ match: { platform: "telegram" } }, telegram],
    [{ match: { platform: "telegram", chat_type: "dm" } }, { ...telegram, chatType: "dm" }],
    [{ match: { platform: "telegram", team: "t" } }, { ...telegram, guild: "t" }],
    [{ match: { platform: "telegram", team: "t", guild: "t" } }, { ...telegram, guild: "t" }],
    [{ match: { platform: "telegram", guild: 5, roles: [1, "x"] } }, { ...telegram, guild: "5", roles: ["1", "x"] }],
    [
      { telegram: "1", topic: "*" },
      { ...telegram, chat: "1", topic: "*" },
    ],
    [
      { telegram: "*", topic: "*" },
      { ...telegram, chat: "*", topic: "*" },
    ],
    [{ match: { platform: "irc", chat: "#a" } }, { ...NOTHING, agent: "a", platform: "irc", chat: "#a" }],
  ])("%j", (written, expected) => {
    expect(binding.parse({ agent: "a", ...written })).toEqual(expected);
  });
});

describe("what cannot be meant is refused, where it stands", () => {
  test.each([
    [{}, "names a platform", []],
    [{ topic: "42" }, "names a platform", []],
    [{ match: {} }, "expected string", ["match", "platform"]],
    [{ match: { platform: "*" } }, "write its name", ["match", "platform"]],
    [{ match: { platform: "telegram", topic: "42" } }, "name the chat", ["match", "topic"]],
    [{ match: { platform: "telegram", topic: "*" } }, "name the chat", ["match", "topic"]],
    [{ telegram: "*", topic: "42" }, "name the chat", ["topic"]],
    [{ match: { platform: "discord", roles: ["mod"] } }, "name the guild", ["match", "roles"]],
    [{ match: { platform: "discord", guild: "*", roles: ["mod"] } }, "name the guild", ["match", "roles"]],
    [{ match: { platform: "discord", guild: "g", roles: [] } }, "", ["match", "roles"]],
    [{ telegram: "1", discord: "2" }, "one platform", ["discord"]],
    [{ telegram: "1", match: { platform: "telegram" } }, "inside match", ["telegram"]],
    [{ match: { platform: "telegram", guild: "g", team: "t" } }, "they differ", ["match", "team"]],
    [{ match: { platform: "telegram", chat_type: "thread" } }, "", ["match", "chat_type"]],
    [{ telegram: 1.5 }, "expected an id", ["telegram"]],
    [{ telegramm: "1" }, "Unrecognized key", []],
  ])("%j", (written, message, path) => {
    const [issue] = binding.safeParse({ agent: "a", ...written }).error?.issues ?? [];
    expect(issue?.message).toContain(message);
    expect(issue?.path).toEqual(path);
  });
});
