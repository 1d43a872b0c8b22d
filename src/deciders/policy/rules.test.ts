import { describe, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { BUILT_IN_TOOLS, TOOL_GROUPS } from "../../contract/tools.ts";
import { settingsWithoutFile } from "../../settings/load-settings.ts";
import { ANY_ARGUMENTS, mayCall } from "./may-call.ts";
import { Policy } from "./policy.ts";

const OWN_TOOLS = ["weather", "mcp__files__read", "mcp__files__write", "mcp__git__log"];
const ALL = [...BUILT_IN_TOOLS, ...OWN_TOOLS];
const mcp = { files: { command: "f" }, git: { command: "g" } };

const policyOf = (tools: unknown, everybodys?: unknown): Policy =>
  new Policy(settingsWithoutFile(configSchema.parse({ tools: everybodys, agents: { main: { tools, mcp } } }), "/home"), ["weather"]);
const verdictOf = (policy: Policy, tool: string) =>
  mayCall({ grant: policy.grantOf("main"), current: policy, tool, args: ANY_ARGUMENTS }).verdict;
const withVerdict = (policy: Policy, verdict: string): string[] => ALL.filter((tool) => verdictOf(policy, tool) === verdict).sort();
const allowed = (tools: unknown, everybodys?: unknown): string[] => withVerdict(policyOf(tools, everybodys), "allow");
const but = (...names: string[]): string[] => ALL.filter((tool) => !names.includes(tool)).sort();

const MINIMAL = ["clarify", "todo"];
const MAIL = ["mail_send", "mail_read", "mail_ack"];
const MESSAGING = [...MINIMAL, ...TOOL_GROUPS.memory, ...TOOL_GROUPS.web, ...TOOL_GROUPS.context, ...MAIL, "message_send"];
const CODING = [
  ...new Set([...MESSAGING, ...TOOL_GROUPS.fs, ...TOOL_GROUPS.runtime, ...TOOL_GROUPS.coordination, ...TOOL_GROUPS.delegation]),
];

describe("what an agent may call", () => {
  test.each<[string, unknown, readonly string[]]>([
    ["nothing written: everything", undefined, ALL],
    ["the profile minimal", "minimal", MINIMAL],
    ["the profile messaging", "messaging", MESSAGING],
    ["the profile coding", "coding", CODING],
    ["the profile full: everything, tools of servers and of the program included", "full", ALL],
    ["the long form of a profile", { profile: "minimal" }, MINIMAL],
    ["a list: these alone", ["file_read", "web_fetch"], ["file_read", "web_fetch"]],
    ["an empty list: nothing", [], []],
    ["a list with a tool of a server", ["mcp__files__read"], ["mcp__files__read"]],
    ["a list with a group", ["group:runtime", "todo"], ["terminal", "process", "todo"]],
    ["a list with a wildcard", ["mail_*"], MAIL],
    ["a list with the wildcard of a server", ["mcp__files__*"], ["mcp__files__read", "mcp__files__write"]],
    ["a wildcard in the middle", ["mcp__*__read", "file_*d"], ["mcp__files__read", "file_read"]],
    ["a wildcard for everything", ["*"], ALL],
    ["other names in a list", ["web_extract", "memory"], ["web_fetch", ...TOOL_GROUPS.memory]],
    ["also_allow adds to the profile", { profile: "minimal", also_allow: ["web_fetch"] }, [...MINIMAL, "web_fetch"]],
    ["also_allow takes groups", { profile: "minimal", also_allow: ["group:fs"] }, [...MINIMAL, ...TOOL_GROUPS.fs]],
    ["also_allow takes wildcards", { profile: "minimal", also_allow: ["mcp__git__*"] }, [...MINIMAL, "mcp__git__log"]],
    ["also_allow without a profile adds nothing to everything", { also_allow: ["terminal"] }, ALL],
    ["allow keeps what it names", { profile: "coding", allow: ["group:fs", "weather"] }, TOOL_GROUPS.fs],
    ["allow keeps what was added too", { profile: "minimal", also_allow: ["weather"], allow: ["weather", "todo"] }, ["weather", "todo"]],
    ["an empty allow keeps nothing", { profile: "full", allow: [] }, []],
    ["deny takes away", { deny: ["terminal"] }, but("terminal")],
    ["deny takes groups", { deny: ["group:runtime"] }, but("terminal", "process")],
    ["deny takes wildcards", { deny: ["mcp__*"] }, BUILT_IN_TOOLS.concat("weather")],
    ["deny takes other names", { deny: ["memory", "web_extract"] }, but(...TOOL_GROUPS.memory, "web_fetch")],
    ["deny wins over also_allow", { profile: "minimal", also_allow: ["terminal"], deny: ["terminal"] }, MINIMAL],
    ["deny wins over allow", { allow: ["terminal", "todo"], deny: ["group:runtime"] }, ["todo"]],
    ["deny everything", { also_allow: ["todo"], deny: ["*"] }, []],
  ])("%s", (_, tools, expected) => {
    expect(allowed(tools)).toEqual([...expected].sort());
  });
});

describe("ask", () => {
  test("asks a person before what is allowed", () => {
    const policy = policyOf({ profile: "coding", ask: ["group:runtime"] });
    expect(withVerdict(policy, "ask")).toEqual(["process", "terminal"]);
    expect(withVerdict(policy, "allow")).toEqual(CODING.filter((tool) => tool !== "terminal" && tool !== "process").sort());
  });

  test("allows nothing by itself", () => {
    expect(withVerdict(policyOf({ profile: "minimal", ask: ["terminal", "todo"] }), "ask")).toEqual(["todo"]);
    expect(withVerdict(policyOf({ allow: ["todo"], ask: ["*"] }), "ask")).toEqual(["todo"]);
  });

  test("loses to deny", () => {
    expect(verdictOf(policyOf({ deny: ["terminal"], ask: ["terminal"] }), "terminal")).toBe("deny");
  });
});

describe("everybody's rules", () => {
  test("are those of an agent that has none", () => {
    expect(allowed(undefined, "messaging")).toEqual([...MESSAGING].sort());
    expect(withVerdict(policyOf(undefined, { ask: ["terminal"] }), "ask")).toEqual(["terminal"]);
  });

  test("are replaced by an agent's own", () => {
    expect(allowed("coding", "minimal")).toEqual([...CODING].sort());
    expect(allowed("full", { allow: ["todo"] })).toEqual([...ALL].sort());
    expect(withVerdict(policyOf("full", { ask: ["terminal"] }), "ask")).toEqual([]);
  });

  test("hold against an agent's own where they deny", () => {
    expect(allowed("full", { profile: "minimal", deny: ["terminal"] })).toEqual(but("terminal"));
    expect(allowed({ profile: "minimal", also_allow: ["terminal"] }, { deny: ["group:runtime"] })).toEqual(MINIMAL);
    expect(allowed(["terminal", "todo"], { deny: ["terminal"] })).toEqual(["todo"]);
  });
});

test("a tool of a server is there for the agents that have the server, whatever else is offered", () => {
  const settings = settingsWithoutFile(configSchema.parse({ agents: { main: {}, other: { mcp } } }), "/home");
  const policy = new Policy(settings, ["mcp__files__read", "weather"]);
  const verdict = (agent: string, tool: string) =>
    mayCall({ grant: policy.grantOf(agent), current: policy, tool, args: ANY_ARGUMENTS }).verdict;
  expect(["main", "other"].map((agent) => verdict(agent, "mcp__files__read"))).toEqual(["deny", "allow"]);
  expect(verdict("main", "weather")).toBe("allow");
});

test("without a file too, what to change leaves the other rules as they are", () => {
  const fixOf = (tools: unknown, tool: string) => {
    const current = policyOf(tools);
    return mayCall({ grant: current.grantOf("main"), current, tool, args: ANY_ARGUMENTS }).fix;
  };
  expect(fixOf({ profile: "minimal", deny: ["clarify"] }, "terminal")).toBe("add also_allow: [terminal] to agents.main.tools");
  expect(fixOf({ profile: "minimal", ask: ["todo"] }, "terminal")).toBe("add also_allow: [terminal] to agents.main.tools");
  expect(fixOf("minimal", "terminal")).toBe("write agents.main.tools: { profile: minimal, also_allow: [terminal] }");
  expect(fixOf({ allow: ["todo"], ask: ["todo"] }, "terminal")).toBe("add terminal to agents.main.tools.allow");
  expect(fixOf(["todo"], "terminal")).toBe("add terminal to agents.main.tools");
});

test("a group that does not exist, capitals and spaces are refused where they are written", () => {
  for (const entry of ["group:files", "group:", "Terminal", "terminal ", "mcp__files__*!", "tеrminal", ""])
    expect(configSchema.safeParse({ tools: [entry] }).success, JSON.stringify(entry)).toBe(false);
});

test("wildcards that would try a regular expression's patience are answered at once", () => {
  const spiteful = `${"a*".repeat(99)}b`;
  expect(verdictOf(policyOf([spiteful]), `mcp__files__${"a".repeat(180)}`)).toBe("deny");
});
