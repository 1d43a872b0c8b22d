import { expect, test } from "vitest";
import { addressAsked } from "./routing.ts";

test.each([
  [{ peer: "7" }, { chat: "7", peer: "7", chatType: "dm", account: "default", guild: null, topic: null, roles: [] }],
  [{ chat: "7", peer: "7" }, { chatType: "dm" }],
  [{ chat: "7" }, { chatType: "group", peer: "7" }],
  [
    { chat: "7", peer: "8" },
    { chatType: "group", peer: "8" },
  ],
  [{ chat: "7", chat_type: "channel" as const }, { chatType: "channel" }],
  [{ chat: "7", team: "g" }, { guild: "g" }],
  [
    { chat: "7", guild: "g", topic: "t", account: "work" },
    { guild: "g", topic: "t", account: "work" },
  ],
  [{ chat: "7", roles: "a, b,," }, { roles: ["a", "b"] }],
])("what is left out of %j is what it most likely is", (query, expected) => {
  expect(addressAsked({ platform: "x", ...query })).toMatchObject(expected);
});

test("without a chat and a sender there is no address", () => {
  expect(addressAsked({ platform: "x", guild: "g" })).toBeNull();
});
