import { describe, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { settingsWithoutFile } from "../../settings/load-settings.ts";
import { explainCall, mayCall } from "./may-call.ts";
import { Policy } from "./policy.ts";

const agents = {
  main: { subagents: { agents: ["coder", "resting", "vanished"] } },
  coder: { shared_paths: [{ path: "/srv/docs" }, { path: "team/../notes", name: "notes" }] },
  resting: { state: "paused", subagents: { agents: ["coder"] } },
  secretive: {},
};
const current = new Policy(settingsWithoutFile(configSchema.parse({ agents }), "/home"));
const call = (tool: string, args: unknown, agent = "main", workspace?: string) =>
  mayCall({ grant: current.grantOf(agent), current, tool, args, ...(workspace ? { workspace } : {}) });

function nested(depth: number): unknown {
  let value: unknown = {};
  for (let level = 1; level < depth; level++) value = { value };
  return value;
}

describe("arguments", () => {
  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["null", null],
    ["text", "{}"],
    ["a list", []],
    ["a class's", new Map()],
    ["a function inside", { a: () => 1 }],
    ["a date inside", { a: new Date(0) }],
    ["a prototype's key", JSON.parse('{"__proto__": {"a": 1}}')],
    ["a prototype's key deep inside", JSON.parse('{"a": [{"b": {"__proto__": null}}]}')],
    ["too deep", nested(101)],
    ["far too deep", nested(100_000)],
    ["too many", { list: new Array(100_001).fill(1) }],
    ["too long", { text: "x".repeat(9 * 1024 * 1024) }],
  ])("that are %s are refused", (_, args) => {
    expect(call("todo", args)).toMatchObject({ verdict: "deny", because: expect.stringContaining("argument") });
  });

  test("around themselves are refused", () => {
    const round: Record<string, unknown> = {};
    round.again = round;
    expect(call("todo", round).verdict).toBe("deny");
  });

  test.each<[unknown]>([[{}], [nested(100)], [{ constructor: 1, a: [null, true, 1, "x", { b: [] }] }], [Object.create(null)]])(
    "%# of a sensible kind are not looked at twice",
    (args) => expect(call("todo", args).verdict).toBe("allow"),
  );
});

describe("the path of a file tool", () => {
  const home = "/home/agents/main/workspace";
  test.each(["a.txt", "./a", "a/../b", "shared/docs/x", "..a", "a..", "...", "", ".", `${home}/a`, home, `${home}/a/../b`])(
    "%j is inside",
    (path) => {
      for (const tool of ["file_read", "file_write", "file_edit", "file_list"]) expect(call(tool, { path }).verdict, tool).toBe("allow");
    },
  );

  test.each([
    "..",
    "../x",
    "a/../../x",
    "./../x",
    "/etc/passwd",
    "/",
    "//etc/passwd",
    `${home}/../x`,
    `${home}x`,
    "/home/agents/coder/workspace/a",
    "..\\x",
    "a\\..\\..\\x",
    "a/./../../b",
    "x\0y",
    7,
    null,
    ["a"],
  ])("%j is not", (path) => {
    for (const tool of ["file_read", "file_write", "file_edit", "file_search", "file_list"])
      expect(call(tool, { path }), tool).toMatchObject({ verdict: "deny", because: expect.stringContaining("`path`") });
  });

  test.each(["/srv/docs", "/srv/docs/a", "/home/notes/a", "shared/docs/a"])("%j is in a folder shared with this agent", (path) => {
    expect(call("file_read", { path }, "coder").verdict).toBe("allow");
    if (path.startsWith("/")) expect(call("file_read", { path }, "main").verdict).toBe("deny");
  });

  test.each(["/srv/docs/../x", "/srv", "/srv/docs2", "/home/team/a"])("%j is in none", (path) => {
    expect(call("file_read", { path }, "coder").verdict).toBe("deny");
  });

  test("may be left out, is measured from the place of the call, and concerns file tools alone", () => {
    expect(call("file_list", {}).verdict).toBe("allow");
    expect(call("file_read", { path: "/srv/w/a" }, "main", "/srv/w").verdict).toBe("allow");
    expect(call("file_read", { path: `${home}/a` }, "main", "/srv/w").verdict).toBe("deny");
    expect(call("context_write", { path: "../x" }).verdict).toBe("allow");
  });
});

describe("agent_delegate", () => {
  test("goes to those who are listed", () => {
    expect(call("agent_delegate", { agent: "coder", goal: "x" }).verdict).toBe("allow");
  });

  test("goes to one that rests: it takes it up later", () => {
    expect(call("agent_delegate", { agent: "resting", goal: "x" }).verdict).toBe("allow");
  });

  test("goes to nobody else, whether or not there is such an agent", () => {
    const answer = (agent: string) => call("agent_delegate", { agent }).because.replaceAll(agent, "X");
    expect(answer("secretive")).toBe(answer("imaginary"));
    expect(call("agent_delegate", { agent: "secretive" })).toMatchObject({
      verdict: "deny",
      because: "agents.main.subagents.agents does not name secretive",
      fix: "add secretive to agents.main.subagents.agents",
    });
    expect(call("agent_delegate", { agent: "codr" }).because).toContain('did you mean "coder"');
  });

  test("goes nowhere from an agent that lists nobody, and says what to write", () => {
    expect(call("agent_delegate", { agent: "main" }, "coder")).toMatchObject({
      verdict: "deny",
      fix: "write agents.coder.subagents.agents: [main]",
    });
  });

  test("to what cannot be an agent's name is not to be listed", () => {
    const { because, fix } = call("agent_delegate", { agent: " coder" });
    expect([because, fix]).toEqual(['agents.main.subagents.agents does not name " coder" (did you mean "coder"?)', null]);
  });

  test("by an agent that stands still is refused for that, and for the list only where it lacks the name", () => {
    const fixOf = (agent: string) =>
      explainCall({ grant: current.grantOf("resting"), current, tool: "agent_delegate", args: { agent } }).fix;
    expect(fixOf("coder")).toBe("guildhall agents resume resting");
    expect(fixOf("main")).toBe("guildhall agents resume resting; and add main to agents.resting.subagents.agents");
  });

  test("by an agent that is gone is explained too", () => {
    const before = new Policy(settingsWithoutFile(configSchema.parse({ agents: { vanished: {} } }), "/home"));
    const answer = explainCall({ grant: before.grantOf("vanished"), current, tool: "agent_delegate", args: { agent: "coder" } });
    expect(answer).toMatchObject({ verdict: "deny", because: 'there is no agent "vanished" any more' });
  });

  test.each<[string, unknown, string]>([
    ["one that is gone", "vanished", 'there is no agent "vanished"'],
    ["no name", undefined, "`agent` must name an agent"],
    ["a number", 7, "`agent` must name an agent"],
    ["a list", ["coder"], "`agent` must name an agent"],
    ["a name of an object's insides", "constructor", "does not name"],
    ["another case", "Coder", "does not name"],
  ])("does not go to %s", (_, agent, because) => {
    expect(call("agent_delegate", { agent })).toMatchObject({ verdict: "deny", because: expect.stringContaining(because) });
  });
});
