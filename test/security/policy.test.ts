import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiClient } from "../../src/client/api-client.ts";
import { PolicyClient } from "../../src/client/policy.ts";
import { configSchema } from "../../src/contract/config.ts";
import type { CanAnswer } from "../../src/contract/policy.ts";
import { toolRules } from "../../src/contract/tools.ts";
import { narrow, readGrant } from "../../src/deciders/policy/grant.ts";
import { layerOf } from "../../src/deciders/policy/layer.ts";
import { mayCall } from "../../src/deciders/policy/may-call.ts";
import { Policy } from "../../src/deciders/policy/policy.ts";
import { toolNameProblem } from "../../src/deciders/policy/tool-name.ts";
import { AgentRegistry } from "../../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../../src/records/agents/revision.ts";
import { settingsWithoutFile } from "../../src/settings/load-settings.ts";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";

/** ASI02 and ASI03, as far as they are policy's. What runs tools and delegates is not there yet: those cases are held at the decider it must ask. */

const policyOf = (agents: object, tools: string[] = []): Policy =>
  new Policy(settingsWithoutFile(configSchema.parse({ agents }), "/home"), tools);
const LOOK_ALIKES = [
  "Terminal",
  "TERMINAL",
  "terminal ",
  " terminal",
  "terminal\t",
  "terminal\u200b",
  "\ufeffterminal",
  "t\u0435rminal",
  "ｔｅｒｍｉｎａｌ",
  "termina\u217c",
  "terminal\0",
  "functions.terminal",
  "default_api:terminal",
  "tools.terminal",
  "mcp__x__terminal",
  "mcp__guildhall__terminal",
  "group:runtime",
  "*",
];

describe("ASI02 tool misuse (at the decider; tools come later)", () => {
  test("a denied tool called by its exact name, though it was never listed, is refused at the call", () => {
    const current = policyOf({ main: { tools: "messaging" } });
    const call = { grant: current.grantOf("main"), current, tool: "terminal", args: { command: "id" } };
    expect(mayCall(call)).toMatchObject({ verdict: "deny", because: expect.stringContaining("does not have terminal") });
  });

  test("a tool that a server or plug-in adds after the filter is refused by the rules as they are", () => {
    const before = policyOf({ main: { tools: ["todo", "mcp__files__read"], mcp: { files: { command: "f" } } } });
    const grant = before.grantOf("main");
    const after = policyOf({ main: { tools: ["todo", "mcp__files__read"], mcp: { files: { command: "f" }, evil: { command: "e" } } } }, [
      "exfiltrate",
    ]);
    for (const tool of ["mcp__files__write", "mcp__evil__read", "exfiltrate"])
      expect(mayCall({ grant, current: after, tool, args: {} }).verdict, tool).toBe("deny");
    expect(mayCall({ grant, current: after, tool: "mcp__files__read", args: {} }).verdict).toBe("allow");
  });

  test.each(LOOK_ALIKES)("%j is no tool, even for an agent that may call everything", (tool) => {
    const current = policyOf({ main: { tools: "full" } });
    const decision = mayCall({ grant: current.grantOf("main"), current, tool, args: {} });
    expect(decision).toMatchObject({ verdict: "deny", tool: null, because: expect.stringContaining("there is no tool") });
  });

  test("no look-alike of a built-in tool can be registered, and a server's tool keeps its server's name", () => {
    for (const name of [...LOOK_ALIKES.filter((name) => !name.startsWith("mcp__")), "terminal", "file__read", "web_extract"])
      expect(toolNameProblem(name), JSON.stringify(name)).not.toBeNull();
    const current = policyOf({ main: { tools: ["terminal"], mcp: { x: { command: "x" } } } });
    expect(mayCall({ grant: current.grantOf("main"), current, tool: "mcp__x__terminal", args: {} }).verdict).toBe("deny");
  });

  test("the alias of a denied tool is denied", () => {
    const current = policyOf({ main: { tools: { deny: ["web_fetch"] } } });
    expect(mayCall({ grant: current.grantOf("main"), current, tool: "web_extract", args: {} }).verdict).toBe("deny");
  });
});

describe("ASI03 identity and privilege (at the decider; delegation comes later)", () => {
  const agents = {
    main: { tools: ["todo", "agent_delegate", "delegate_task"], subagents: { agents: ["middle", { id: "ops", rights: "own" }] } },
    middle: { tools: "full", subagents: { agents: ["strong", { id: "ops", rights: "own" }] } },
    strong: { tools: "full" },
    ops: { tools: ["terminal"] },
  };
  const current = policyOf(agents);
  const main = current.grantOf("main");

  test("a child does not get a tool by asking for it that its parent lacks", () => {
    const child = narrow(main, layerOf("delegate_task", toolRules.parse(["terminal", "todo"])));
    expect(mayCall({ grant: child, current, tool: "terminal", args: {} }).verdict).toBe("deny");
    expect(mayCall({ grant: child, current, tool: "todo", args: {} }).verdict).toBe("allow");
  });

  test("nor does a named delegate, directly or through a third agent", () => {
    const middle = current.grantOfDelegate(main, "middle");
    const strong = current.grantOfDelegate(middle, "strong");
    for (const grant of [middle, strong, readGrant(JSON.stringify(strong))]) {
      expect(mayCall({ grant, current, tool: "terminal", args: {} }).verdict).toBe("deny");
      expect(mayCall({ grant, current, tool: "todo", args: {} }).verdict).toBe("allow");
    }
  });

  test("unless the operator wrote `rights: own` for that edge, and for as long as it stands there", () => {
    const ops = current.grantOfDelegate(main, "ops");
    expect(mayCall({ grant: ops, current, tool: "terminal", args: {} }).verdict).toBe("allow");
    const without = policyOf({ ...agents, main: { ...agents.main, subagents: { agents: ["ops"] } } });
    expect(mayCall({ grant: ops, current: without, tool: "terminal", args: {} }).verdict).toBe("deny");
  });

  test("a grant that says more than it was given is not believed where it can be seen, and never reaches past the config", () => {
    const forged = JSON.parse(JSON.stringify(main));
    forged.layers[0].rules.allow = null;
    expect(mayCall({ grant: readGrant(forged), current, tool: "terminal", args: {} }).verdict).toBe("deny");
    expect(mayCall({ grant: readGrant({ ...forged, agent: "strong" }), current, tool: "terminal", args: {} }).verdict).toBe("deny");
  });

  test("policy tightened in mid-run: the next call of a run that goes on is refused", () => {
    const registry = new AgentRegistry(revisionWithoutFile(configSchema.parse({ agents: { main: { tools: "coding" } } })));
    const grant = registry.current.policy.grantOf("main");
    const call = () => mayCall({ grant, current: registry.current.policy, tool: "terminal", args: {} }).verdict;
    expect(call()).toBe("allow");
    registry.apply(revisionWithoutFile(configSchema.parse({ agents: { main: { tools: "messaging" } } })));
    expect(call()).toBe("deny");
    registry.apply(revisionWithoutFile(configSchema.parse({ agents: { main: { tools: "coding", state: "paused" } } })));
    expect(call()).toBe("deny");
  });
});

describe("can, by HTTP and by the command", () => {
  const CONFIG = `agents:
  main: {}
  coder: { tools: coding, subagents: { agents: [main] } }
  kid:
    tools: { profile: messaging, deny: [web_search], ask: [web_fetch] }
`;
  let home: Home;
  let daemon: RunningDaemon;
  const tokens: Record<string, string> = {};

  beforeAll(async () => {
    home = new Home(CONFIG);
    daemon = await home.start();
    for (const scope of ["read", "agent:kid", "agent:coder", "guest:visitor", "channel:test"]) {
      const answer = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
      tokens[scope] = ((await answer.json()) as { token: string }).token;
    }
  });
  afterAll(() => home.remove());

  async function ask(token: string, agent: string, query: string): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${daemon.url}/api/agents/${agent}/can?${query}`, { headers: { authorization: `Bearer ${token}` } });
    return { status: answer.status, text: await answer.text() };
  }

  test("give the same answer, with exit 0 for allow and ask and 1 for deny", async () => {
    const policy = new PolicyClient(new ApiClient(daemon.url, daemon.token));
    for (const [agent, tool, args, exit] of [
      ["coder", "terminal", undefined, 0],
      ["kid", "web_fetch", undefined, 0],
      ["kid", "web_search", undefined, 1],
      ["kid", "Terminal", undefined, 1],
      ["coder", "agent_delegate", '{"agent":"kid"}', 1],
      ["coder", "file_read", '{"path":"../x"}', 1],
    ] as const) {
      const { code, stdout } = await home.run(["can", agent, tool, ...(args ? [args] : []), "--json"]);
      const answer = JSON.parse(stdout) as CanAnswer;
      expect([agent, tool, code]).toEqual([agent, tool, exit]);
      expect(answer).toEqual(await policy.can(agent, { tool, args }));
      expect([code, answer.verdict === "deny"]).toEqual([exit, exit === 1]);
    }
  });

  test("exit 2 for an agent that does not exist and for arguments that are no JSON", async () => {
    const unknown = await home.run(["can", "codr", "terminal", "--json"]);
    expect([unknown.code, JSON.parse(unknown.stdout).error.code]).toEqual([2, "agent.unknown"]);
    expect(unknown.stderr).toContain('did you mean "coder"');
    expect((await home.run(["can", "coder", "terminal", "{x"])).code).toBe(2);
    expect((await home.run(["can", "coder"])).code).toBe(2);
    expect((await ask(daemon.token, "codr", "tool=terminal")).status).toBe(404);
    expect((await ask(daemon.token, "coder", "tool=terminal&args=%7Bx")).status).toBe(422);
    expect((await ask(daemon.token, "coder", "tool=terminal&scope=operator")).status).toBe(422);
  });

  test("name the line in words a person reads", async () => {
    const { stdout } = await home.run(["can", "kid", "web_search"]);
    expect(stdout).toContain("deny: agents.kid.tools.deny has web_search (guildhall.yaml:5)");
    expect(stdout).toContain("to allow it: remove web_search from agents.kid.tools.deny, guildhall.yaml:5");
  });

  test("are for operators, readers and the agent itself; another agent's rules are as if there were none", async () => {
    const statuses: Record<string, number> = {};
    for (const [scope, token] of Object.entries(tokens)) statuses[scope] = (await ask(token, "kid", "tool=web_fetch")).status;
    expect(statuses).toEqual({ read: 200, "agent:kid": 200, "agent:coder": 404, "guest:visitor": 403, "channel:test": 403 });
    const coder = tokens["agent:coder"] as string;
    expect(await ask(coder, "kid", "tool=todo")).toEqual(await ask(coder, "imaginary", "tool=todo"));
  });

  test("a change of the file is the answer of the running daemon too", async () => {
    const policy = new PolicyClient(new ApiClient(daemon.url, daemon.token));
    expect((await policy.can("coder", { tool: "terminal" })).verdict).toBe("allow");
    writeFileSync(join(home.path, "guildhall.yaml"), CONFIG.replace("tools: coding", "tools: messaging"));
    while ((await policy.can("coder", { tool: "terminal" })).verdict !== "deny") await sleep(50);
    expect((await home.run(["can", "coder", "terminal", "--json"])).code).toBe(1);
  });
});
