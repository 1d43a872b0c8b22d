import { describe, expect, test } from "vitest";
import { type Binding, binding } from "../../contract/bindings.ts";
import { bindingProblems } from "./binding-problems.ts";

const rule = (agent: string, match: object): Binding => binding.parse({ agent, match: { platform: "x", ...match } });
const problems = (bindings: readonly Binding[], states: Record<string, "paused" | "archived" | "quarantined"> = {}, more: object = {}) =>
  bindingProblems(
    { agents: { main: {} }, unrouted: "default", bindings, lineOf: (index) => 10 + index, ...more },
    (agent) => states[agent] ?? "active",
  );
const found = (...bindings: Binding[]) =>
  problems(bindings).map(({ code, index, other }) => `${10 + (index ?? 0)} ${code.replace("binding.", "")} ${10 + (other ?? 0)}`);

describe("a rule that can never win is told, with the one that always does", () => {
  test("the same again", () => {
    expect(problems([rule("a", { chat: "1" }), rule("b", { peer: "2" }), rule("c", { chat: "1" })])).toEqual([
      {
        severity: "warning",
        code: "binding.duplicate",
        index: 2,
        other: 0,
        message: "line 12 is never used: line 10 (x 1 → a) asks for the same and stands first",
        fix: "Remove one of the two.",
      },
    ]);
  });

  test.each<[string, Binding[], string[]]>([
    ['"*" says nothing of what is always there', [rule("a", { chat: "*" }), rule("b", {})], ["11 duplicate 10"]],
    [
      "roles in another order",
      [rule("a", { guild: "g", roles: ["r", "s"] }), rule("b", { guild: "g", roles: ["s", "r"] })],
      ["11 duplicate 10"],
    ],
    ["fewer roles", [rule("a", { guild: "g", roles: ["r", "s"] }), rule("b", { guild: "g", roles: ["s"] })], ["11 shadowed 10"]],
    ["any topic of a chat that has a rule", [rule("a", { chat: "1" }), rule("b", { chat: "1", topic: "*" })], ["11 shadowed 10"]],
    ["any guild of a platform that has a rule", [rule("a", {}), rule("b", { guild: "*" })], ["11 shadowed 10"]],
    ["any role of a guild that has a rule", [rule("a", { guild: "g" }), rule("b", { guild: "g", roles: ["*"] })], ["11 shadowed 10"]],
    [
      "two rules that have its roles between them",
      [rule("a", { guild: "g", roles: ["r"] }), rule("b", { guild: "g", roles: ["s"] }), rule("c", { guild: "g", roles: ["r", "s"] })],
      ["12 shadowed 10"],
    ],
    [
      "rules for all three types of chat",
      [rule("a", {}), rule("b", { chat_type: "dm" }), rule("c", { chat_type: "group" }), rule("d", { chat_type: "channel" })],
      ["10 shadowed 11"],
    ],
    ["three times the same", [rule("a", {}), rule("b", {}), rule("c", {})], ["11 duplicate 10", "12 duplicate 10"]],
  ])("%s", (_, bindings, expected) => {
    expect(found(...bindings)).toEqual(expected);
  });

  test("the fix is one that helps", () => {
    const [later] = problems([rule("a", { chat: "1" }), rule("b", { chat: "1", topic: "*" })]);
    expect(later?.fix).toBe("Put it before line 10, or remove it.");
    expect(found(rule("b", { chat: "1", topic: "*" }), rule("a", { chat: "1" }))).toEqual([]);
  });
});

describe("a rule that wins somewhere is not told", () => {
  test.each<[string, Binding[]]>([
    ["less specific", [rule("a", { chat: "1" }), rule("b", {})]],
    ["more specific, later", [rule("a", {}), rule("b", { chat: "1" })]],
    ["another account", [rule("a", { chat: "1", account: "w" }), rule("b", { chat: "1", account: "h" })]],
    ["one role more", [rule("a", { guild: "g", roles: ["r"] }), rule("b", { guild: "g", roles: ["r", "s"] })]],
    ["overlapping, neither within the other", [rule("a", { chat: "1", peer: "2" }), rule("b", { chat: "1", account: "w" })]],
    ["two of three types", [rule("a", {}), rule("b", { chat_type: "dm" }), rule("c", { chat_type: "group" })]],
    ["any topic first", [rule("a", { chat: "1", topic: "*" }), rule("b", { chat: "1" })]],
    ["another platform", [rule("a", {}), { ...rule("b", {}), platform: "y" }]],
  ])("%s", (_, bindings) => {
    expect(found(...bindings)).toEqual([]);
  });
});

describe("agents that do not answer", () => {
  test("are told with every rule that names them, and as the default", () => {
    const told = problems([rule("a", {}), rule("b", { chat: "1" })], { a: "paused", b: "archived", main: "quarantined" });
    expect(told.map(({ code, index, message, fix }) => [code, index, message, fix])).toEqual([
      [
        "binding.agent_paused",
        0,
        'it binds messages to "a", which is paused: they wait',
        "Bind it to another agent, or run `guildhall agents resume a`.",
      ],
      [
        "binding.agent_archived",
        1,
        'it binds messages to "b", which is archived: they are refused',
        "Bind it to another agent, or run `guildhall agents resume b`.",
      ],
      [
        "binding.agent_quarantined",
        null,
        'messages that no rule matches go to "main", the default agent, which is broken: they are refused',
        "Correct the agent's section.",
      ],
    ]);
  });

  test("a missing default is an error, and none where nothing goes to it", () => {
    const agents = { a: {}, b: {} };
    expect(problems([], {}, { agents })).toMatchObject([{ severity: "error", code: "binding.no_default", index: null }]);
    expect(problems([], { main: "paused" }, { unrouted: "refuse" })).toEqual([]);
  });
});
