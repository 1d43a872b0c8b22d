import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Config, configSchema } from "../src/contract/config.ts";
import type { Verdict } from "../src/contract/policy.ts";
import { toolRules } from "../src/contract/tools.ts";
import { type Grant, narrow, readGrant } from "../src/deciders/policy/grant.ts";
import { layerOf } from "../src/deciders/policy/layer.ts";
import { ANY_ARGUMENTS, type CallDecision, explainCall, mayCall } from "../src/deciders/policy/may-call.ts";
import { Policy } from "../src/deciders/policy/policy.ts";
import { settingsWithoutFile } from "../src/settings/load-settings.ts";
import { SEED } from "./models/seed.ts";
import { anyConfig, anyName, anyRules, byChain, byConfig, byRules, byWriting, type Chain, edge, rank, WORLD } from "./policy-oracle.ts";

const seeded = (numRuns: number) => ({ seed: SEED, numRuns });
const configOf = (written: unknown): Config => configSchema.parse(written);
const policyOf = (config: Config): Policy => new Policy(settingsWithoutFile(config, "/home"));
const verdictOf = (grant: Grant, current: Policy, tool: string): Verdict => mayCall({ grant, current, tool, args: ANY_ARGUMENTS }).verdict;
const verdictsOf = (grant: Grant, current: Policy): Verdict[] => WORLD.map((tool) => verdictOf(grant, current, tool));
const step = (written: unknown) => layerOf("step", toolRules.parse(written));

const anyMove = fc.oneof(
  fc.record({ kind: fc.constant("step" as const), rules: anyRules }),
  fc.record({ kind: fc.constant("delegate" as const), to: anyName }),
  fc.record({ kind: fc.constant("reload" as const), config: anyConfig }),
  fc.record({ kind: fc.constant("store" as const) }),
);
type Move = typeof anyMove extends fc.Arbitrary<infer M> ? M : never;
const anyMoves = fc.array(anyMove, { maxLength: 8 });

/** A run, as the decider and as the oracle know it, and the most it may ever call. */
interface Run {
  readonly grant: Grant;
  readonly chain: Chain;
  readonly now: Config;
  readonly ceiling: ReadonlyMap<string, number>;
}

function begin(now: Config, agent: string): Run {
  const chain: Chain = { agent, began: now, steps: [], caller: null, rights: null };
  const ceiling = new Map(WORLD.map((tool) => [tool, rank(byWriting(now, agent, tool))]));
  return { grant: policyOf(now).grantOf(agent), chain, now, ceiling };
}

function moved(run: Run, move: Move): Run {
  const { grant, chain, now, ceiling } = run;
  const lowered = (limit: (tool: string) => number) => new Map([...ceiling].map(([tool, most]) => [tool, Math.min(most, limit(tool))]));
  switch (move.kind) {
    case "store":
      return { ...run, grant: readGrant(JSON.stringify(grant)) };
    case "reload":
      return { ...run, now: configOf(move.config) };
    case "step": {
      const rules = toolRules.parse(move.rules);
      const next = { ...chain, steps: [...chain.steps, rules] };
      return { ...run, grant: narrow(grant, step(move.rules)), chain: next, ceiling: lowered((tool) => rank(byRules(rules, tool))) };
    }
    case "delegate": {
      const rights = edge(now, chain.agent, move.to);
      const own = (tool: string): number => (rights === null ? 0 : rank(byWriting(now, move.to, tool)));
      return {
        now,
        grant: policyOf(now).grantOfDelegate(grant, move.to),
        chain: { agent: move.to, began: now, steps: [], caller: chain, rights },
        ceiling: rights === "own" ? new Map(WORLD.map((tool) => [tool, own(tool)])) : lowered(own),
      };
    }
  }
}

describe(`seed ${SEED}`, () => {
  test("an agent may call what contract.md §3 says, tool by tool", () => {
    const met: Record<Verdict, number> = { allow: 0, ask: 0, deny: 0 };
    fc.assert(
      fc.property(anyConfig, anyName, (written, agent) => {
        const config = configOf(written);
        const policy = policyOf(config);
        const expected = WORLD.map((tool) => byConfig(config, agent, tool));
        for (const verdict of expected) met[verdict]++;
        expect(verdictsOf(policy.grantOf(agent), policy)).toEqual(expected);
      }),
      seeded(1_000),
    );
    for (const verdict of ["allow", "ask", "deny"] as const) expect(met[verdict], verdict).toBeGreaterThan(500);
  });

  test("no sequence of steps, delegation, reloading and storing adds a tool or takes a question away", () => {
    const met: Record<Verdict, number> = { allow: 0, ask: 0, deny: 0 };
    fc.assert(
      fc.property(anyConfig, anyName, anyMoves, (written, agent, moves) => {
        let run = begin(configOf(written), agent);
        for (const move of moves) run = moved(run, move);
        const verdicts = verdictsOf(run.grant, policyOf(run.now));
        for (const verdict of verdicts) met[verdict]++;
        const more = WORLD.filter((tool, index) => rank(verdicts[index] as Verdict) > (run.ceiling.get(tool) as number));
        expect(more).toEqual([]);
        expect(verdicts).toEqual(WORLD.map((tool) => byChain(run.chain, run.now, tool)));
      }),
      seeded(1_500),
    );
    for (const verdict of ["allow", "ask", "deny"] as const) expect(met[verdict], verdict).toBeGreaterThan(300);
  });

  test("each move by itself leaves no more than there was", () => {
    fc.assert(
      fc.property(anyConfig, anyName, anyMoves, anyMove, (written, agent, moves, last) => {
        let run = begin(configOf(written), agent);
        for (const move of moves) run = moved(run, move);
        if (last.kind === "reload" || (last.kind === "delegate" && edge(run.now, run.chain.agent, last.to) === "own")) return;
        const current = policyOf(run.now);
        const before = verdictsOf(run.grant, current);
        const after = verdictsOf(moved(run, last).grant, current);
        expect(WORLD.filter((_, index) => rank(after[index] as Verdict) > rank(before[index] as Verdict))).toEqual([]);
        if (last.kind === "store") expect(after).toEqual(before);
      }),
      seeded(500),
    );
  });

  test("a deny in any layer denies, and an ask is never less than a question", () => {
    const anyTool = fc.constantFrom(...WORLD);
    fc.assert(
      fc.property(fc.array(anyRules, { maxLength: 4 }), fc.nat(4), anyTool, (layers, place, tool) => {
        const current = policyOf(configOf({ agents: { main: { mcp: { files: { command: "f" }, git: { command: "g" } } } } }));
        const at = Math.min(place, layers.length);
        const among = (rules: unknown) =>
          narrow(current.grantOf("main"), ...[...layers.slice(0, at), rules, ...layers.slice(at)].map(step));
        expect(verdictOf(among({ deny: [tool] }), current, tool)).toBe("deny");
        expect(verdictOf(among({ ask: [tool] }), current, tool)).not.toBe("allow");
      }),
      seeded(1_000),
    );
  });

  test("the order of layers does not matter, and the trace changes nothing", () => {
    fc.assert(
      fc.property(anyConfig, anyName, anyMoves, fc.infiniteStream(fc.nat()), (written, agent, moves, numbers) => {
        let run = begin(configOf(written), agent);
        for (const move of moves) run = moved(run, move);
        const current = policyOf(run.now);
        const places = run.grant.layers.map((layer) => ({ layer, place: numbers.next().value as number }));
        const shuffled = { ...run.grant, layers: places.sort((a, b) => a.place - b.place).map(({ layer }) => layer) };
        const calls = WORLD.map((tool) => ({ grant: run.grant, current, tool, args: ANY_ARGUMENTS }));
        const short = ({ verdict, because }: CallDecision) => `${verdict}: ${because}`;
        expect(verdictsOf(shuffled, current)).toEqual(verdictsOf(run.grant, current));
        expect(calls.map((call) => short(explainCall(call)))).toEqual(calls.map((call) => short(mayCall(call))));
      }),
      seeded(200),
    );
  });

  test("only the exact name of a tool is one", () => {
    const current = policyOf(configOf({}));
    const anyText = fc.oneof(
      fc.string({ unit: "binary" }),
      fc
        .tuple(fc.constantFrom(...WORLD), fc.string({ unit: "binary", maxLength: 3 }), fc.nat(20))
        .map(([name, more, at]) => name.slice(0, at) + more + name.slice(at)),
      fc.constantFrom(...WORLD).map((name) => name.toUpperCase()),
    );
    fc.assert(
      fc.property(anyText, (tool) => {
        const decision = mayCall({ grant: current.grantOf("main"), current, tool, args: {} });
        const exact = (WORLD.includes(tool) && !tool.startsWith("mcp__")) || tool === "web_extract";
        expect([tool, decision.tool !== null]).toEqual([tool, exact]);
        if (!exact) expect(decision.verdict).toBe("deny");
      }),
      seeded(500),
    );
  });
});
