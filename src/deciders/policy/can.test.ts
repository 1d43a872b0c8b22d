import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { isFailure } from "../../kernel/failure.ts";
import { loadSettings } from "../../settings/load-settings.ts";
import { can } from "./can.ts";
import { Policy } from "./policy.ts";

const home = mkdtempSync(join(tmpdir(), "guildhall-can-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function policyOf(yaml: string): Policy {
  writeFileSync(join(home, "guildhall.yaml"), yaml);
  return new Policy(loadSettings({ home }, {}));
}

const YAML = `tools:
  profile: minimal
  deny:
    - image_generate
    - "mcp__*"
agents:
  main: {}
  coder:
    tools: coding
    subagents: { agents: [main] }
  kid:
    tools:
      - todo
      - web_fetch
  surfer: { tools: [web_fetch] }
  researcher:
    tools:
      profile: messaging
      also_allow: [terminal, web_fetch]
      allow:
        - terminal
        - group:web
      deny:
        - group:runtime
        - terminal
      ask: [web_search]
  narrow:
    tools: { profile: minimal, deny: [clarify] }
  resting: { state: paused }
  broken: { tools: codin }
`;
const policy = policyOf(YAML);

describe("the line that decides, and what to change", () => {
  test.each<[string, string, string, string, string | null]>([
    ["main", "todo", "allow", "the profile minimal of tools has todo (guildhall.yaml:2)", null],
    [
      "main",
      "terminal",
      "deny",
      "the profile minimal of tools does not have terminal (guildhall.yaml:2)",
      "add also_allow: [terminal] to tools, guildhall.yaml:2 (for every agent without tools of its own)",
    ],
    ["coder", "terminal", "allow", "the profile coding of agents.coder.tools has terminal (guildhall.yaml:9)", null],
    [
      "coder",
      "image_generate",
      "deny",
      "the profile coding of agents.coder.tools does not have image_generate (guildhall.yaml:9)",
      "write agents.coder.tools: { profile: coding, also_allow: [image_generate] }, guildhall.yaml:9; and remove image_generate from tools.deny, guildhall.yaml:4",
    ],
    ["kid", "web_extract", "allow", "agents.kid.tools has web_fetch (guildhall.yaml:14)", null],
    [
      "kid",
      "terminal",
      "deny",
      "agents.kid.tools does not name terminal (guildhall.yaml:13)",
      "add terminal to agents.kid.tools, guildhall.yaml:13",
    ],
    ["surfer", "web_fetch", "allow", "agents.surfer.tools has web_fetch (guildhall.yaml:15)", null],
    [
      "researcher",
      "terminal",
      "deny",
      "agents.researcher.tools.deny has group:runtime (guildhall.yaml:24)",
      "remove group:runtime from agents.researcher.tools.deny, guildhall.yaml:24, or name there what it stands for without terminal; and remove terminal from agents.researcher.tools.deny, guildhall.yaml:25",
    ],
    [
      "researcher",
      "web_search",
      "ask",
      "agents.researcher.tools.ask has web_search (guildhall.yaml:26): a person must approve web_search first",
      null,
    ],
    [
      "researcher",
      "file_read",
      "deny",
      "the profile messaging of agents.researcher.tools does not have file_read (guildhall.yaml:18)",
      "add file_read to agents.researcher.tools.also_allow, guildhall.yaml:19; and add file_read to agents.researcher.tools.allow, guildhall.yaml:21",
    ],
    [
      "researcher",
      "todo",
      "deny",
      "agents.researcher.tools.allow does not name todo (guildhall.yaml:21)",
      "add todo to agents.researcher.tools.allow, guildhall.yaml:21",
    ],
    [
      "narrow",
      "web_fetch",
      "deny",
      "the profile minimal of agents.narrow.tools does not have web_fetch (guildhall.yaml:28)",
      "add also_allow: [web_fetch] to agents.narrow.tools, guildhall.yaml:28",
    ],
    ["resting", "todo", "deny", "agent resting is paused (guildhall.yaml:29)", "guildhall agents resume resting"],
    ["coder", "termnal", "deny", 'there is no tool "termnal" (did you mean "terminal"?)', null],
    ["coder", "group:runtime", "deny", 'there is no tool "group:runtime"; in rules it stands for terminal, process', null],
    ["coder", "file_*d", "deny", 'there is no tool "file_*d"; in rules it stands for file_read', null],
    ["coder", "mcp__git__log", "deny", 'there is no tool "mcp__git__log": agent coder has no MCP server git', null],
    [
      "coder",
      "memory",
      "deny",
      'there is no tool "memory"; in rules it stands for memory_save, memory_search, memory_forget, session_search',
      null,
    ],
  ])("%s, %s: %s", (agent, tool, verdict, because, fix) => {
    expect(can(policy, agent, tool)).toMatchObject({ agent, tool, verdict, because, fix });
  });

  test("names the broken line of an agent in quarantine", () => {
    const { verdict, because, fix, trace } = can(policy, "broken", "todo");
    expect(verdict).toBe("deny");
    expect(because).toContain("agent broken is quarantined");
    expect(because).toContain("(guildhall.yaml:30)");
    expect(fix).toContain("guildhall.yaml:30");
    expect([fix?.includes("; and "), trace.length]).toEqual([false, 1]);
  });

  test("is in the trace with all the others", () => {
    const { trace } = can(policy, "researcher", "terminal");
    expect(trace.map(({ rule, line, hit }) => `${line}: ${rule}${hit ? " ●" : ""}`)).toEqual([
      "18: profile: messaging",
      "19: also_allow: terminal ●",
      "19: also_allow: web_fetch",
      "21: allow: terminal ●",
      "22: allow: group:web",
      "24: deny: group:runtime ●",
      "25: deny: terminal ●",
      "26: ask: web_search",
      "4: deny: image_generate",
      "5: deny: mcp__*",
    ]);
    expect(trace.every(({ file }) => file === "guildhall.yaml")).toBe(true);
  });

  test("of a delegate is the list that lacks it", () => {
    const yes = can(policy, "coder", "agent_delegate", '{"agent":"main"}');
    expect(yes.verdict).toBe("allow");
    expect(can(policy, "coder", "agent_delegate", '{"agent":"kid"}')).toMatchObject({
      verdict: "deny",
      because: "agents.coder.subagents.agents does not name kid (guildhall.yaml:10)",
      fix: "add kid to agents.coder.subagents.agents, guildhall.yaml:10",
    });
  });
});

test("doing what the fix says allows the call", () => {
  const before = "agents:\n  kid:\n    tools:\n      profile: minimal\n      deny: [terminal]\n";
  expect(can(policyOf(before), "kid", "terminal").fix).toBe(
    "remove terminal from agents.kid.tools.deny, guildhall.yaml:5; and add also_allow: [terminal] to agents.kid.tools, guildhall.yaml:4",
  );
  const after = "agents:\n  kid:\n    tools:\n      profile: minimal\n      also_allow: [terminal]\n      deny: []\n";
  expect(can(policyOf(after), "kid", "terminal").verdict).toBe("allow");
  const short = "agents:\n  kid: { tools: minimal }\n";
  expect(can(policyOf(short), "kid", "terminal").fix).toBe(
    "write agents.kid.tools: { profile: minimal, also_allow: [terminal] }, guildhall.yaml:2",
  );
  const long = "agents:\n  kid: { tools: { profile: minimal, also_allow: [terminal] } }\n";
  expect(can(policyOf(long), "kid", "terminal").verdict).toBe("allow");
});

test("without rules everything is allowed, and that is said", () => {
  expect(can(policyOf("agents: { main: }\n"), "main", "terminal")).toMatchObject({
    verdict: "allow",
    because: "no tools are written, and the default profile full has terminal",
  });
});

test("an agent that does not exist, and arguments that are no JSON, are no answers", () => {
  const failure = (work: () => unknown): unknown => {
    try {
      return work();
    } catch (error) {
      return isFailure(error) ? [error.code, error.message] : error;
    }
  };
  expect(failure(() => can(policy, "codr", "todo"))).toEqual(["agent.unknown", 'there is no agent "codr" (did you mean "coder"?)']);
  expect(failure(() => can(policy, "constructor", "todo"))).toEqual(["agent.unknown", 'there is no agent "constructor"']);
  expect(failure(() => can(policy, "coder", "todo", "{x"))).toMatchObject(["request.malformed", expect.stringContaining("expected JSON")]);
  expect(can(policy, "coder", "todo", "[1]")).toMatchObject({ verdict: "deny", because: expect.stringContaining("not an object") });
});
