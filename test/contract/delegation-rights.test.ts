import fc from "fast-check";
import { expect, test } from "vitest";
import { grantOfChild, withoutSubagents } from "../../src/abilities/tools/delegation/child-grant.ts";
import { configSchema } from "../../src/contract/config.ts";
import { BUILT_IN_TOOLS, PROFILE_NAMES, TOOL_GROUPS, toolRules } from "../../src/contract/tools.ts";
import { type Grant, readGrant } from "../../src/deciders/policy/grant.ts";
import { ANY_ARGUMENTS, verdictOf } from "../../src/deciders/policy/may-call.ts";
import { Policy } from "../../src/deciders/policy/policy.ts";
import { settingsWithoutFile } from "../../src/settings/load-settings.ts";

const NAMES = ["ada", "ben", "cy", "dot"];
const entry = fc.constantFrom(...BUILT_IN_TOOLS, ...Object.keys(TOOL_GROUPS).map((group) => `group:${group}`), "mail_*", "*");
const entries = fc.uniqueArray(entry, { maxLength: 6 });
const rules = fc.oneof(
  fc.constantFrom(...PROFILE_NAMES),
  entries,
  fc.record(
    { profile: fc.constantFrom(...PROFILE_NAMES), also_allow: entries, allow: entries, deny: entries, ask: entries },
    { requiredKeys: [] },
  ),
);
const hop = fc.oneof(
  fc.record({ kind: fc.constant("child" as const), tools: fc.option(rules, { nil: undefined }) }),
  fc.record({ kind: fc.constant("agent" as const), to: fc.constantFrom(...NAMES), spawns: fc.boolean() }),
);
const RANK = { deny: 0, ask: 1, allow: 2 } as const;

/** What may be called, from nothing to everything. */
function rightsOf(policy: Policy, grant: Grant): Map<string, number> {
  return new Map(BUILT_IN_TOOLS.map((tool) => [tool, RANK[verdictOf({ grant, current: policy, tool, args: ANY_ARGUMENTS })]]));
}

function policyOf(tools: readonly unknown[], edges: readonly (readonly [string, string, "narrowed" | "own"])[]): Policy {
  const agents = Object.fromEntries(
    NAMES.map((id, index) => [
      id,
      { tools: tools[index], subagents: { agents: edges.filter(([from]) => from === id).map(([, to, rights]) => ({ id: to, rights })) } },
    ]),
  );
  return new Policy(settingsWithoutFile(configSchema.parse({ agents }), "/home"));
}

test("P2: down a chain of children and named agents, rights only ever narrow, also after they were stored and read again", () => {
  const edges = NAMES.flatMap((from) => NAMES.filter((to) => to !== from).map((to) => [from, to, "narrowed"] as const));
  fc.assert(
    fc.property(fc.array(rules, { minLength: 4, maxLength: 4 }), fc.array(hop, { minLength: 1, maxLength: 6 }), (tools, hops) => {
      const policy = policyOf(tools, edges);
      let grant = policy.grantOf("ada");
      for (const next of hops) {
        const before = rightsOf(policy, grant);
        if (next.kind === "child") grant = grantOfChild(grant, next.tools === undefined ? undefined : toolRules.parse(next.tools));
        else if (next.to === grant.agent) continue;
        else {
          const delegate = policy.grantOfDelegate(grant, next.to);
          grant = next.spawns ? delegate : withoutSubagents(delegate);
          if (!next.spawns) expect(rightsOf(policy, grant).get("delegate_task")).toBe(0);
          const own = rightsOf(policy, policy.grantOf(next.to));
          for (const [tool, right] of rightsOf(policy, grant)) expect(right).toBeLessThanOrEqual(own.get(tool) as number);
        }
        grant = readGrant(JSON.stringify(grant));
        for (const [tool, right] of rightsOf(policy, grant)) expect(right).toBeLessThanOrEqual(before.get(tool) as number);
      }
    }),
    { numRuns: 300 },
  );
});

test("P2: the one exception is what the operator wrote, for the agent it is written for: then it has its own rights and no more", () => {
  fc.assert(
    fc.property(fc.array(rules, { minLength: 4, maxLength: 4 }), (tools) => {
      const policy = policyOf(tools, [
        ["ada", "ben", "own"],
        ["ben", "cy", "narrowed"],
      ]);
      const ben = policy.grantOfDelegate(policy.grantOf("ada"), "ben");
      expect(rightsOf(policy, ben)).toEqual(rightsOf(policy, policy.grantOf("ben")));
      const cy = rightsOf(policy, policy.grantOfDelegate(ben, "cy"));
      const own = rightsOf(policy, policy.grantOf("ben"));
      for (const [tool, right] of cy) expect(right).toBeLessThanOrEqual(own.get(tool) as number);
      expect(new Set(rightsOf(policy, policy.grantOfDelegate(policy.grantOf("ada"), "dot")).values())).toEqual(new Set([0]));
    }),
    { numRuns: 100 },
  );
});

test("a child gets what is withheld only by its name", () => {
  const policy = policyOf(["full", "full", "full", "full"], []);
  const may = (tools: unknown, tool: string) =>
    rightsOf(policy, grantOfChild(policy.grantOf("ada"), toolRules.parse(tools))).get(tool) === 2;
  expect(may(["memory_search"], "memory_search")).toBe(true);
  expect(may("full", "memory_search")).toBe(false);
  expect(may(["*"], "memory_search")).toBe(false);
  expect(may(["mail_*"], "mail_send")).toBe(true);
  expect(may({ also_allow: ["clarify"] }, "clarify")).toBe(true);
  expect(may({ also_allow: ["clarify"] }, "message_send")).toBe(false);
});
