import { describe, expect, test } from "vitest";
import type { Binding } from "../../contract/bindings.ts";
import type { Address } from "./address.ts";
import { Router } from "./router.ts";

const NOTHING = { account: null, guild: null, chat: null, topic: null, chatType: null, peer: null, roles: null };
const rule = (agent: string, platform: string, fields: Partial<Binding> = {}): Binding => ({ ...NOTHING, agent, platform, ...fields });
const router = (bindings: readonly Binding[], firstLine: number | null = 21): Router =>
  new Router({ agents: { main: {} }, unrouted: "default", bindings, lineOf: (index) => (firstLine === null ? null : firstLine + index) });

const address: Address = {
  platform: "telegram",
  account: "default",
  guild: null,
  chat: "-100123456",
  topic: "42",
  chatType: "group",
  peer: "7",
  roles: [],
};

describe("the trace has a line for every rule, in the order of the file, and says why it won or lost", () => {
  const bindings = [
    rule("coder", "telegram", { chat: "-100123456", topic: "42" }),
    rule("coder", "telegram", { chat: "-100123456" }),
    rule("researcher", "whatsapp", { chat: "*" }),
    rule("ops", "telegram", { chat: "-100123456", topic: "42" }),
    rule("ops", "telegram", { chat: "-7" }),
    rule("ops", "telegram", { account: "work" }),
    rule("ops", "telegram", { guild: "g", roles: ["mod"] }),
    rule("ops", "telegram", { chat: "-100123456", topic: "43" }),
    rule("ops", "telegram", { peer: "8" }),
    rule("ops", "telegram", { chatType: "dm" }),
  ];

  test("as people read it", () => {
    const { trace, ...decision } = router(bindings).explain(address);
    expect(decision).toEqual({
      agent: "coder",
      tier: "topic",
      binding: "telegram -100123456, topic 42 → coder",
      because: "line 21 names this topic, and no rule that matches is more specific",
    });
    expect(trace.map(({ line, hit, binding, why }) => `${line} ${hit ? "✓" : "·"} ${binding}: ${why}`)).toEqual([
      "21 ✓ telegram -100123456, topic 42 → coder: line 21 names this topic, and no rule that matches is more specific",
      "22 · telegram -100123456 → coder: less specific than line 21",
      "23 · whatsapp * → researcher: another platform",
      "24 · telegram -100123456, topic 42 → ops: as specific as line 21, which stands first",
      "25 · telegram -7 → ops: another chat",
      "26 · telegram, account work → ops: another account",
      "27 · telegram, guild g, roles mod → ops: not in a guild",
      "28 · telegram -100123456, topic 43 → ops: another topic",
      "29 · telegram, peer 8 → ops: another sender",
      "30 · telegram, chat type dm → ops: another type of chat: group",
    ]);
  });

  test("also of roles, of guilds and of rules that name fewer fields", () => {
    const rules = [
      rule("a", "telegram", { guild: "g", roles: ["mod"] }),
      rule("b", "telegram", { guild: "g", roles: ["*"] }),
      rule("c", "telegram", { guild: "h" }),
      rule("d", "telegram", { topic: "*", chat: "-100123456" }),
      rule("e", "telegram", { account: "default" }),
      rule("f", "telegram"),
    ];
    const why = (changed: Partial<Address>) =>
      router(rules)
        .explain({ ...address, topic: null, guild: "g", ...changed })
        .trace.map((line) => line.why);
    expect(why({ roles: ["vip"] })).toEqual([
      "matches no role",
      "line 22 names this guild, and no rule that matches is more specific",
      "another guild",
      "not in a topic",
      "less specific than line 22",
      "less specific than line 22",
    ]);
    expect(why({ roles: [] }).slice(0, 2)).toEqual(["the sender has no role", "the sender has no role"]);
    expect(why({ guild: "i" }).slice(4)).toEqual([
      "line 25 names this platform and account, and no rule that matches is more specific",
      "less specific than line 25, which names more",
    ]);
    expect(why({ roles: ["mod"] })[0]).toBe("line 21 names this guild and a role of the sender, and no rule that matches is more specific");
  });

  test("without a file, rules are called by their number", () => {
    expect(router(bindings, null).explain(address).trace[1]).toEqual({
      binding: "telegram -100123456 → coder",
      line: null,
      hit: false,
      why: "less specific than rule 1",
    });
  });
});

describe("a trace with a limit", () => {
  const others = Array.from({ length: 5_000 }, (_, index) => rule("ops", index % 2 ? "telegram" : "discord", { chat: `c${index}` }));
  const bindings = [
    ...others,
    rule("all", "telegram"),
    rule("coder", "telegram", { chat: "-100123456" }),
    rule("dms", "telegram", { chatType: "group" }),
  ];

  test("tells the winner, those that lost to it, then others of the platform, and how many it leaves out", () => {
    const { trace, omitted, ...decision } = router(bindings).explain(address, 10);
    expect({ ...decision, trace: [] }).toEqual(router(bindings).route(address));
    expect(trace.slice(0, 3).map((line) => line.binding)).toEqual([
      "telegram -100123456 → coder",
      "telegram, chat type group → dms",
      "telegram → all",
    ]);
    expect(trace.slice(3).every((line) => line.why === "another chat")).toBe(true);
    expect(trace).toHaveLength(10);
    expect(omitted).toBe(bindings.length - 10);
  });

  test("is whole where there is room for every rule", () => {
    const few = router(bindings.slice(-3)).explain(address, 3);
    expect(few).toEqual(router(bindings.slice(-3)).explain(address));
    expect(few).not.toHaveProperty("omitted");
  });

  test("holds however many rules match, and always has the winner", () => {
    const equal = Array.from({ length: 1_000 }, () => rule("ops", "telegram", { guild: "g", roles: ["a", "b"] }));
    const told = router([...equal, rule("coder", "telegram", { chat: address.chat })]).explain(
      { ...address, guild: "g", roles: ["b", "a"] },
      100,
    );
    expect(told.trace.map((line) => line.hit)).toEqual([true, ...Array(99).fill(false)]);
    expect(new Set(told.trace.map((line) => line.line)).size).toBe(100);
    expect(told.omitted).toBe(901);
  });

  test("puts no more rules into words than it tells", () => {
    let looked = 0;
    const counting = new Router({
      agents: { main: {} },
      unrouted: "default",
      bindings,
      lineOf: (index) => {
        looked++;
        return index;
      },
    });
    counting.explain(address, 10);
    expect(looked).toBe(10);
  });
});

test("a decision does not depend on what was asked before", () => {
  const one = router([rule("a", "x", { chat: "c" }), rule("b", "x")]);
  const at = { ...address, platform: "x", topic: null };
  const before = one.route({ ...at, chat: "d" });
  one.explain({ ...at, chat: "c" });
  expect(one.route({ ...at, chat: "d" })).toEqual(before);
  expect(before.trace).toEqual([]);
});
