import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { BUILT_IN_TOOLS } from "../../contract/tools.ts";
import { canonicalName, isToolName, noSuchTool, serverOf, toolNameProblem } from "./tool-name.ts";

describe("a call's name", () => {
  test.each(BUILT_IN_TOOLS)("%s is a tool's", (name) => expect(canonicalName(name)).toBe(name));

  test.each([
    ["web_extract", "web_fetch"],
    ["mcp__files__read-all", "mcp__files__read-all"],
    ["mcp__my-files_2__read", "mcp__my-files_2__read"],
  ])("%s means %s", (called, meant) => expect(canonicalName(called)).toBe(meant));

  test.each([
    "Terminal",
    "TERMINAL",
    "terminal ",
    " terminal",
    "terminal\n",
    "terminal\u200b",
    "\ufeffterminal",
    "term\u00adinal",
    "t\u0435rminal",
    "ｔｅｒｍｉｎａｌ",
    "terminаl",
    "functions.terminal",
    "default_api:terminal",
    "tools/terminal",
    "file-read",
    "terminal()",
    "terminal\0",
    "",
    "_terminal",
    "1terminal",
    "mcp__",
    "mcp__x",
    "mcp____terminal",
    "mcp__X__terminal",
    "mcp__a b__c",
    "group:fs",
    "memory",
    "*",
    "file_*",
    "a".repeat(201),
    "terminal\u202e",
    "İ",
  ])("%j is no tool's", (name) => expect(canonicalName(name)).toBeNull());

  test.each([[undefined], [null], [7], [{ toString: () => "terminal" }], [["terminal"]]])("%j is none at all", (name) =>
    expect(canonicalName(name)).toBeNull(),
  );

  test("of a server is read from the front, so that no two servers share a tool", () => {
    expect(serverOf("mcp__a__b__c")).toBe("a");
    expect(serverOf("mcp__a___b")).toBe("a");
    expect(serverOf("terminal")).toBeNull();
  });

  test("of a server is read as the config wrote it, for every name that the config takes", () => {
    const isTaken = (server: string): boolean =>
      configSchema.safeParse({ agents: { main: { mcp: { [server]: { command: "x" } } } } }).success;
    for (const server of ["a_", "a__b", "_a", "-a", "a_-_", "A", ""]) expect([server, isTaken(server)]).toEqual([server, false]);
    for (const server of ["a", "a_b", "a-_b", "a-", "7"]) expect([server, isTaken(server)]).toEqual([server, true]);
    const name = (maxLength: number) => fc.string({ unit: fc.constantFrom("a", "_", "-"), maxLength });
    fc.assert(
      fc.property(name(6), name(4), (server, tool) => {
        fc.pre(tool !== "" && isTaken(server));
        expect(serverOf(`mcp__${server}__${tool}`)).toBe(server);
      }),
      { seed: 20_261_115, numRuns: 300 },
    );
  });
});

describe("a name that is no tool's", () => {
  test.each([
    ["termnal", '"termnal"', "terminal"],
    ["Terminal", '"Terminal"', "terminal"],
    ["functions.terminal", '"functions.terminal"', "terminal"],
    ["default_api:web_fetch", '"default_api:web_fetch"', "web_fetch"],
    ["t\u0435rminal", '"t\\u0435rminal"', "terminal"],
    ["terminal\u200b", '"terminal\\u200b"', "terminal"],
    ["mcp__x__terminal", '"mcp__x__terminal"', "terminal"],
  ])("%j is shown as it is, with what was meant", (called, shown, meant) => {
    expect(noSuchTool(called, BUILT_IN_TOOLS)).toBe(`there is no tool ${shown} (did you mean "${meant}"?)`);
  });

  test("is cut when it is long, and bounded when it is spiteful", () => {
    expect(noSuchTool("x".repeat(1_000_000), BUILT_IN_TOOLS).length).toBeLessThan(300);
    expect(noSuchTool(`${".".repeat(100_000)}x`, BUILT_IN_TOOLS).length).toBeLessThan(300);
    expect(noSuchTool(7, BUILT_IN_TOOLS)).toBe("there is no tool without a name");
  });
});

describe("who offers a tool", () => {
  test.each(["weather", "mcp__files__read", "mcp__calendar__schedule"])("may call it %s", (name) =>
    expect(toolNameProblem(name)).toBeNull(),
  );

  test.each([
    ["terminal", "is a built-in tool"],
    ["web_extract", "stands for web_fetch"],
    ["memory", "stands for group:memory"],
    ["file__read", "looks like the built-in file_read"],
    ["terminal_", "looks like the built-in terminal"],
    ["webfetch", "looks like the built-in web_fetch"],
    ["termina1", "looks like the built-in terminal"],
    ["t0do", "looks like the built-in todo"],
    ["vveb_fetch", "looks like the built-in web_fetch"],
    ["rnemory", "looks like the built-in memory"],
    ["clalm", "looks like the built-in claim"],
    ["proce5s", "looks like the built-in process"],
    ["Terminal", "cannot be a tool's name"],
    ["file-read", "cannot be a tool's name"],
    ["t\u0435rminal", "cannot be a tool's name"],
    ["mcp__files", "cannot be a tool's name"],
    ["", "cannot be a tool's name"],
  ])("may not call it %j", (name, why) => expect(toolNameProblem(name)).toContain(why));

  test("can use every name that a call can", () => {
    expect(isToolName("weather")).toBe(true);
    expect(canonicalName("weather")).toBe("weather");
  });
});
