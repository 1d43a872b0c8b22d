import { describe, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { toolRules } from "../../contract/tools.ts";
import { type Settings, settingsWithoutFile } from "../../settings/load-settings.ts";
import { type Grant, NO_RIGHTS, narrow, readGrant } from "./grant.ts";
import { layerOf } from "./layer.ts";
import { ANY_ARGUMENTS, explainCall, mayCall } from "./may-call.ts";
import { Policy } from "./policy.ts";

const settingsOf = (agents: object, more: object = {}): Settings => settingsWithoutFile(configSchema.parse({ ...more, agents }), "/home");
const policyOf = (agents: object, more: object = {}): Policy => new Policy(settingsOf(agents, more));
const verdict = (grant: Grant, current: Policy, tool: string) => mayCall({ grant, current, tool, args: ANY_ARGUMENTS }).verdict;
const step = (tools: unknown) => layerOf("step test", toolRules.parse(tools));
const delegated = (current: Policy, caller: Grant, to: string): Grant => current.grantOfDelegate(caller, to);

describe("narrowing", () => {
  const current = policyOf({ main: { tools: "coding" } });
  const own = current.grantOf("main");

  test("leaves what every layer allows", () => {
    const child = narrow(own, step(["terminal", "image_generate", "todo"]));
    expect(verdict(child, current, "terminal")).toBe("allow");
    expect(verdict(child, current, "image_generate")).toBe("deny");
    expect(verdict(child, current, "file_read")).toBe("deny");
    expect(verdict(own, current, "file_read")).toBe("allow");
  });

  test("keeps asking, whoever in the chain asks", () => {
    const asking = narrow(own, step({ ask: ["terminal"] }), step("full"));
    expect(verdict(asking, current, "terminal")).toBe("ask");
    expect(verdict(narrow(asking, step({ deny: ["terminal"] })), current, "terminal")).toBe("deny");
  });

  test("without end ends with no rights", () => {
    let grant = own;
    for (let layer = 0; layer < 200; layer++) grant = narrow(grant, step("full"));
    expect(verdict(grant, current, "todo")).toBe("deny");
  });
});

describe("a named delegate", () => {
  const agents = {
    main: { tools: ["todo", "agent_delegate"], subagents: { agents: ["coder", { id: "ops", rights: "own" }] } },
    coder: { tools: "coding", subagents: { agents: ["ops"] } },
    ops: { tools: ["terminal", "todo"] },
    stranger: { tools: "full" },
  };
  const current = policyOf(agents);

  test("has what both have", () => {
    const coder = delegated(current, current.grantOf("main"), "coder");
    expect(verdict(coder, current, "todo")).toBe("allow");
    expect(verdict(coder, current, "terminal")).toBe("deny");
    expect(verdict(coder, current, "agent_delegate")).toBe("allow");
  });

  test("has its own rights where the operator wrote so for this caller, and through nobody else", () => {
    const ops = delegated(current, current.grantOf("main"), "ops");
    expect(verdict(ops, current, "terminal")).toBe("allow");
    expect(verdict(ops, current, "agent_delegate")).toBe("deny");
    const throughCoder = delegated(current, delegated(current, current.grantOf("main"), "coder"), "ops");
    expect(verdict(throughCoder, current, "terminal")).toBe("deny");
    expect(verdict(throughCoder, current, "todo")).toBe("allow");
  });

  test("that its caller may not name has no rights", () => {
    expect(verdict(delegated(current, current.grantOf("main"), "stranger"), current, "todo")).toBe("deny");
    expect(verdict(delegated(current, current.grantOf("main"), "nobody"), current, "todo")).toBe("deny");
  });

  test("loses its own rights with the words that gave them, and gets none by words that come later", () => {
    const ops = delegated(current, current.grantOf("main"), "ops");
    const taken = policyOf({ ...agents, main: { ...agents.main, subagents: { agents: ["ops"] } } });
    expect(verdict(ops, taken, "terminal")).toBe("deny");
    expect(verdict(ops, taken, "todo")).toBe("allow");
    expect(verdict(readGrant(JSON.stringify(ops)), taken, "terminal")).toBe("deny");
    const narrowed = delegated(taken, taken.grantOf("main"), "ops");
    expect(verdict(narrowed, current, "terminal")).toBe("deny");
    const gone = policyOf({ ...agents, main: { ...agents.main, subagents: {} } });
    expect(verdict(ops, gone, "terminal")).toBe("deny");
  });

  test("loses its own rights while its caller stands still", () => {
    const ops = delegated(current, current.grantOf("main"), "ops");
    const paused = policyOf({ ...agents, main: { ...agents.main, state: "paused" } });
    expect(verdict(ops, paused, "terminal")).toBe("deny");
  });

  test("has no server's tool that its caller could not call, unless it has its own rights", () => {
    const mcp = { cloud: { command: "c" } };
    const servers = policyOf({
      main: { subagents: { agents: ["ops", { id: "owner", rights: "own" }] } },
      ops: { mcp, subagents: { agents: ["third"] } },
      owner: { mcp },
      third: { mcp },
    });
    const main = servers.grantOf("main");
    const ops = delegated(servers, main, "ops");
    for (const grant of [main, ops, delegated(servers, ops, "third")]) expect(verdict(grant, servers, "mcp__cloud__drop")).toBe("deny");
    expect(mayCall({ grant: ops, current: servers, tool: "mcp__cloud__drop", args: {} })).toMatchObject({
      because: "agent main has no MCP server cloud, and ops acts within its rights",
      fix: expect.stringContaining("rights: own"),
    });
    for (const grant of [delegated(servers, main, "owner"), servers.grantOf("ops"), delegated(servers, servers.grantOf("ops"), "third")])
      expect(verdict(grant, servers, "mcp__cloud__drop")).toBe("allow");
  });

  test("that was not there when it was named gives no rights on, even when it comes back and its caller began as itself", () => {
    const first = policyOf({ main: { subagents: { agents: ["coder"] } }, coder: {} });
    const coder = delegated(first, first.grantOf("main"), "coder");
    const without = policyOf({ other: {}, coder: { subagents: { agents: ["main"] } } });
    const nobody = delegated(without, coder, "main");
    const back = policyOf({ main: { subagents: { agents: [{ id: "ops", rights: "own" }] } }, coder: {}, ops: {} });
    expect(verdict(nobody, back, "todo")).toBe("deny");
    expect(verdict(delegated(back, nobody, "ops"), back, "todo")).toBe("deny");
  });

  test("listed twice has the stricter rights", () => {
    const twice = policyOf({ ...agents, main: { ...agents.main, subagents: { agents: [{ id: "ops", rights: "own" }, "ops"] } } });
    expect(twice.rightsOn("main", "ops")).toBe("narrowed");
  });
});

describe("a change of the config", () => {
  const before = policyOf({ main: { tools: "coding" }, other: {} });
  const child = narrow(before.grantOf("main"), step("full"));

  test("that takes a tool away bites at the next call, in children too", () => {
    const after = policyOf({ main: { tools: { profile: "coding", deny: ["terminal"] } }, other: {} });
    for (const grant of [before.grantOf("main"), child, readGrant(JSON.stringify(child))]) {
      expect(verdict(grant, before, "terminal")).toBe("allow");
      expect(verdict(grant, after, "terminal")).toBe("deny");
    }
  });

  test("in everybody's deny bites at the next call", () => {
    const after = policyOf({ main: { tools: "coding" }, other: {} }, { tools: { deny: ["group:runtime"] } });
    expect(verdict(child, after, "terminal")).toBe("deny");
  });

  test("that asks, asks at the next call", () => {
    expect(verdict(child, policyOf({ main: { tools: { profile: "coding", ask: ["terminal"] } } }), "terminal")).toBe("ask");
  });

  test("that allows more gives a run nothing, and says why", () => {
    const after = policyOf({ main: {} });
    const decision = mayCall({ grant: before.grantOf("main"), current: after, tool: "image_generate", args: {} });
    expect(decision).toMatchObject({
      verdict: "deny",
      because: expect.stringContaining("when this run began"),
      fix: expect.stringContaining("new run"),
    });
    expect(verdict(after.grantOf("main"), after, "image_generate")).toBe("allow");
  });

  test("of a parent narrows its delegates too", () => {
    const edge = { subagents: { agents: ["helper"] } };
    const first = policyOf({ main: { tools: "coding", ...edge }, helper: {} });
    const grant = delegated(first, first.grantOf("main"), "helper");
    expect(verdict(grant, first, "terminal")).toBe("allow");
    expect(verdict(grant, policyOf({ main: { tools: "messaging", ...edge }, helper: {} }), "terminal")).toBe("deny");
  });
});

describe("an agent that stands still may call nothing, and nobody by its rights", () => {
  const edge = { subagents: { agents: ["helper"] } };
  const first = policyOf({ main: { ...edge }, helper: {} });
  const grants = { own: first.grantOf("helper"), delegated: delegated(first, first.grantOf("main"), "helper") };
  const broken = {
    severity: "error",
    code: "x",
    file: "f",
    line: 3,
    column: 1,
    path: "agents.helper",
    message: "is wrong",
    fix: "Write it right.",
  } as const;
  const quarantined = (id: string): Policy =>
    new Policy({ ...settingsOf({ main: { ...edge }, helper: {} }), quarantined: new Map([[id, [broken]]]) });

  test.each<[string, Policy, string]>([
    ["paused", policyOf({ main: { ...edge }, helper: { state: "paused" } }), "agent helper is paused"],
    ["archived", policyOf({ main: { ...edge }, helper: { state: "archived" } }), "agent helper is archived"],
    ["removed", policyOf({ main: {} }), 'there is no agent "helper" any more'],
    ["quarantined", quarantined("helper"), "agent helper is quarantined: is wrong (guildhall.yaml:3)"],
  ])("%s", (_, current, because) => {
    for (const grant of [grants.own, grants.delegated, current.grantOf("helper")])
      expect(mayCall({ grant, current, tool: "todo", args: {} })).toMatchObject({
        verdict: "deny",
        because: expect.stringContaining(because),
      });
  });

  test.each<[string, Policy]>([
    ["paused", policyOf({ main: { ...edge, state: "paused" }, helper: {} })],
    ["archived", policyOf({ main: { ...edge, state: "archived" }, helper: {} })],
    ["removed", policyOf({ helper: {} })],
    ["quarantined", quarantined("main")],
  ])("and its parent %s", (_, current) => {
    expect(verdict(grants.delegated, current, "todo")).toBe("deny");
    expect(verdict(grants.own, current, "todo")).toBe("allow");
  });
});

test("a grant made of a broken section is none, also when the section is repaired", () => {
  const settings = settingsOf({ main: {} });
  const problem = {
    severity: "error",
    code: "x",
    file: "f",
    line: 1,
    column: 1,
    path: "agents.main",
    message: "is wrong",
    fix: "",
  } as const;
  const grant = new Policy({ ...settings, quarantined: new Map([["main", [problem]]]) }).grantOf("main");
  const repaired = new Policy(settings);
  expect(verdict(grant, repaired, "todo")).toBe("deny");
  expect(verdict(repaired.grantOf("main"), repaired, "todo")).toBe("allow");
});

describe("a stored grant", () => {
  const current = policyOf({ main: { tools: "coding" } });
  const whole = narrow(current.grantOf("main"), step({ ask: ["terminal"] }));
  const stored = JSON.parse(JSON.stringify(whole)) as { agent: string; layers: Record<string, unknown>[] };

  test("comes back as it was", () => {
    expect(readGrant(JSON.stringify(whole))).toEqual(whole);
    expect(verdict(readGrant(stored), current, "terminal")).toBe("ask");
  });

  test("comes back from a step with a very long name", () => {
    const long = narrow(current.grantOf("main"), layerOf("step ".repeat(1_000), toolRules.parse(["todo"])));
    expect(readGrant(JSON.stringify(long))).toEqual(long);
  });

  test.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["half a text", JSON.stringify(whole).slice(0, -5)],
    ["no text at all", ""],
    ["a list", [stored]],
    ["no layers", { agent: "main", layers: [] }],
    ["no agent", { layers: stored.layers }],
    ["an agent's rules lost", { agent: "main", layers: stored.layers.slice(1) }],
    ["another agent's rules", { ...stored, agent: "other" }],
    ["a rule lost", { ...stored, layers: stored.layers.map(({ rules: _, ...layer }) => layer) }],
    [
      "a profile that is none",
      { ...stored, layers: stored.layers.map((layer) => ({ ...layer, rules: { ...(layer.rules as object), profile: "all" } })) },
    ],
    [
      "a deny that is no list",
      { ...stored, layers: stored.layers.map((layer) => ({ ...layer, rules: { ...(layer.rules as object), deny: null } })) },
    ],
    ["a key that nobody knows", { ...stored, unless: [] }],
    ["a layer with one", { ...stored, layers: stored.layers.map((layer) => ({ ...layer, skip: true })) }],
    ["a prototype", JSON.stringify(stored).replace('"agent"', '"__proto__":{"layers":[]},"agent"')],
    ["too many layers", { ...stored, layers: Array.from({ length: 101 }, () => stored.layers[0]) }],
  ])("that holds %s allows nothing", (_, value) => {
    const grant = readGrant(value);
    expect(mayCall({ grant, current, tool: "todo", args: {} }).verdict).toBe("deny");
    expect(mayCall({ grant: narrow(grant, step("full")), current, tool: "todo", args: {} }).verdict).toBe("deny");
  });

  test("without rights gives none to a delegate, whatever the config says later", () => {
    const first = policyOf({ main: {} });
    const later = policyOf({ main: { subagents: { agents: ["helper"] } }, lost: { subagents: { agents: ["helper"] } }, helper: {} });
    const nobodys = [
      NO_RIGHTS,
      first.grantOf("lost"),
      readGrant({}),
      { agent: "main", layers: [] },
      first.grantOfDelegate(first.grantOf("main"), "lost"),
    ];
    for (const grant of nobodys) {
      expect(verdict(grant, later, "todo")).toBe("deny");
      expect(verdict(later.grantOfDelegate(grant, "helper"), later, "todo")).toBe("deny");
    }
  });

  test("without rights stays without them", () => {
    expect(mayCall({ grant: NO_RIGHTS, current, tool: "todo", args: {} }).because).toContain("allows nothing");
  });
});

test("explaining decides what deciding decides, and adds every rule", () => {
  const current = policyOf({ main: { tools: { profile: "coding", deny: ["terminal"], ask: ["process"] } } });
  const grant = narrow(current.grantOf("main"), step(["process", "todo"]));
  for (const tool of ["terminal", "process", "todo", "image_generate", "Terminal"]) {
    const { trace, ...short } = mayCall({ grant, current, tool, args: {} });
    const { trace: full, ...long } = explainCall({ grant, current, tool, args: {} });
    expect({ ...long, fix: null }).toEqual({ ...short, fix: null });
    expect(trace).toEqual([]);
    expect(full.length).toBeGreaterThan(0);
  }
});
