import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import type { Address } from "./address.ts";
import { DEFAULT_SCOPES, SessionKeys, sessionKey } from "./session-key.ts";

const dm: Address = { platform: "telegram", account: "default", guild: null, chat: "7", topic: null, chatType: "dm", peer: "7", roles: [] };
const group: Address = { ...dm, chat: "-100", chatType: "group" };

describe("direct messages", () => {
  test.each([
    ["main", "agent:coder:main"],
    ["per-peer", "agent:coder:dm:telegram%3A7"],
    ["per-channel-peer", "agent:coder:telegram:dm:7"],
    ["per-account-channel-peer", "agent:coder:telegram:default:dm:7"],
  ] as const)("%s → %s", (dmScope, key) => {
    expect(sessionKey("coder", dm, { ...DEFAULT_SCOPES, dmScope })).toBe(key);
  });

  test("are kept apart by channel and sender unless told otherwise", () => {
    expect(sessionKey("coder", dm)).toBe("agent:coder:telegram:dm:7");
  });

  test("per-peer merges only the ids that the operator has linked", () => {
    const identityOf = (platform: string, peer: string) => (platform === "discord" && peer === "9" ? "jon" : null);
    const scopes = { ...DEFAULT_SCOPES, dmScope: "per-peer" as const, identityOf };
    expect(sessionKey("coder", { ...dm, platform: "discord", peer: "9" }, scopes)).toBe("agent:coder:dm:jon");
    expect(sessionKey("coder", dm, scopes)).toBe("agent:coder:dm:telegram%3A7");
  });
});

describe("groups and channels", () => {
  test.each([
    [group, "agent:coder:telegram:group:-100"],
    [{ ...group, topic: "42" }, "agent:coder:telegram:group:-100:topic:42"],
    [{ ...group, account: "work" }, "agent:coder:telegram:work:group:-100"],
    [{ ...group, chatType: "channel" as const }, "agent:coder:telegram:channel:-100"],
    [{ ...group, chat: "a:b" }, "agent:coder:telegram:group:a%3Ab"],
  ])("%#: %s", (address, key) => {
    expect(sessionKey("coder", address)).toBe(key);
  });

  test("per-peer gives everybody a conversation of their own", () => {
    expect(sessionKey("coder", { ...group, topic: "42" }, { ...DEFAULT_SCOPES, groupScope: "per-peer" })).toBe(
      "agent:coder:telegram:group:-100:topic:42:peer:7",
    );
  });
});

test("two chats or topics never share a key, whatever their ids are made of", () => {
  const id = fc.string({ unit: fc.constantFrom("a", ":", "%", "3", "A", "topic", "/"), minLength: 1, maxLength: 6 });
  const place = fc.record({ chat: id, topic: fc.option(id), account: id });
  fc.assert(
    fc.property(place, place, (one, other) => {
      const same = one.chat === other.chat && one.topic === other.topic && one.account === other.account;
      expect(sessionKey("a", { ...group, ...one }) === sessionKey("a", { ...group, ...other })).toBe(same);
    }),
    { numRuns: 2_000 },
  );
});

describe("the config decides how far apart conversations are kept", () => {
  const config = configSchema.parse({
    dm_scope: "per-peer",
    agents: { main: {}, coder: { dm_scope: "main", group_scope: "per-peer" } },
    identities: { jon: ["telegram:7", "discord:9"] },
  });

  test("everybody's word holds for an agent that has none of its own", () => {
    expect(new SessionKeys(config).keyFor("main", dm)).toBe("agent:main:dm:jon");
    expect(new SessionKeys(config).keyFor("main", { ...dm, platform: "discord", peer: "9" })).toBe("agent:main:dm:jon");
    expect(new SessionKeys(config).keyFor("main", { ...dm, peer: "8" })).toBe("agent:main:dm:telegram%3A8");
    expect(new SessionKeys(config).keyFor("main", group)).toBe("agent:main:telegram:group:-100");
  });

  test("its own word comes first", () => {
    expect(new SessionKeys(config).keyFor("coder", dm)).toBe("agent:coder:main");
    expect(new SessionKeys(config).keyFor("coder", group)).toBe("agent:coder:telegram:group:-100:peer:7");
  });

  test("without any word, channel and sender keep them apart", () => {
    expect(new SessionKeys(configSchema.parse({})).keyFor("main", dm)).toBe("agent:main:telegram:dm:7");
  });

  test("a linked name can be part of a key, or is refused when the config is read", () => {
    for (const name of ["\ud800", "a\0b"]) expect(configSchema.safeParse({ identities: { [name]: ["telegram:7"] } }).success).toBe(false);
    const linked = configSchema.parse({ dm_scope: "per-peer", identities: { "Jón 😀": ["telegram:7"] } });
    expect(new SessionKeys(linked).keyFor("main", dm)).toBe("agent:main:dm:J%C3%B3n%20%F0%9F%98%80");
  });

  test("nobody is somebody else's linked id, or is called like one", () => {
    const linked = configSchema.parse({ dm_scope: "per-peer", identities: { "telegram:7": ["discord:9"], "telegram%3A7": ["slack:1"] } });
    const keys = [
      new SessionKeys(linked).keyFor("main", dm),
      new SessionKeys(linked).keyFor("main", { ...dm, platform: "discord", peer: "9" }),
      new SessionKeys(linked).keyFor("main", { ...dm, platform: "slack", peer: "1" }),
    ];
    expect(keys).toEqual(["agent:main:dm:telegram%3A7", "agent:main:dm:telegram%253A7", "agent:main:dm:telegram%25253A7"]);
    expect(new SessionKeys(linked).keyFor("main", { ...dm, platform: "discord:9", peer: "x" })).not.toBe(keys[1]);
  });
});
