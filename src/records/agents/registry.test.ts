import { expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { type Agent, modelOfChild } from "./agent.ts";
import { AgentRegistry } from "./registry.ts";
import { revisionWithoutFile } from "./revision.ts";

const registry = (input: unknown) => new AgentRegistry(revisionWithoutFile(configSchema.parse(input)));

test("agents inherit what they do not say themselves", () => {
  const agents = registry({
    model: "a/b",
    personality: "brief",
    budget: { usd_per_day: 5, tokens_per_task: 10 },
    sandbox: { kind: "none" },
    dm_scope: "main",
    group_scope: "per-peer",
    memory_scope: "chat",
    workspace_scope: "topic",
    agents: {
      main: {},
      coder: {
        model: "c/d",
        personality: "exact",
        roles: ["engineer"],
        budget: { tokens_per_task: 20 },
        sandbox: { kind: "auto" },
        dm_scope: "per-peer",
        group_scope: "chat",
        memory_scope: "agent",
        workspace_scope: "agent",
      },
    },
  });
  expect(agents.get("main")).toMatchObject({
    model: "a/b",
    personality: "brief",
    hasOwnPersonality: false,
    isDefault: true,
    roles: [],
    state: "active",
    because: null,
    budget: { usd_per_day: 5, tokens_per_task: 10 },
    sandbox: { kind: "none" },
    dmScope: "main",
    groupScope: "per-peer",
    memoryScope: "chat",
    workspaceScope: "topic",
  });
  expect(agents.get("coder")).toMatchObject({
    model: "c/d",
    personality: "exact",
    hasOwnPersonality: true,
    isDefault: false,
    roles: ["engineer"],
    budget: { usd_per_day: 5, tokens_per_task: 20 },
    sandbox: { kind: "auto" },
    dmScope: "per-peer",
    groupScope: "chat",
    memoryScope: "agent",
    workspaceScope: "agent",
  });
});

test("where nobody says anything, everything has a default", () => {
  const agents = registry({});
  expect(agents.list().map(({ id }) => id)).toEqual(["main"]);
  expect(agents.get("main")).toMatchObject({
    model: "offline/demo",
    personality: null,
    isDefault: true,
    budget: {},
    sandbox: { kind: "auto" },
    dmScope: "per-channel-peer",
    groupScope: "chat",
    memoryScope: "agent",
    workspaceScope: "agent",
    subagents: { model: null, maxDepth: 2, maxChildren: 5, agents: [] },
  });
  expect(agents.get("constructor")).toBeUndefined();
});

test("a child's model: the call's, else the agent's for children, else everybody's for children, else its parent's", () => {
  const agents = registry({
    model: "a/parent",
    subagent: { model: "a/everybody" },
    agents: { main: {}, own: { subagents: { model: "a/own" } } },
  });
  const of = (id: string) => agents.get(id) as Agent;
  expect(modelOfChild(of("own"), "a/call")).toBe("a/call");
  expect(modelOfChild(of("own"), undefined)).toBe("a/own");
  expect(modelOfChild(of("main"), undefined)).toBe("a/everybody");
  expect(modelOfChild(registry({ model: "a/parent" }).get("main") as Agent, undefined)).toBe("a/parent");
});

test("a new revision replaces everything at once, and whoever holds the old one keeps it", () => {
  const agents = registry({ model: "a/old", agents: { main: {}, gone: {} } });
  const held = agents.current;
  agents.apply(revisionWithoutFile(configSchema.parse({ model: "a/new" })));
  expect(agents.list().map(({ id, model }) => [id, model])).toEqual([["main", "a/new"]]);
  expect([...held.agents.values()].map(({ id, model }) => [id, model])).toEqual([
    ["main", "a/old"],
    ["gone", "a/old"],
  ]);
});

test("an agent whose section is paused or archived says so", () => {
  const agents = registry({ agents: { main: {}, tired: { state: "paused" }, old: { state: "archived" } } });
  expect(agents.list().map(({ state, because }) => [state, because])).toEqual([
    ["active", null],
    ["paused", "the config says `state: paused`"],
    ["archived", "the config says `state: archived`"],
  ]);
});
