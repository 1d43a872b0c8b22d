import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Binding } from "../src/contract/bindings.ts";
import type { Address } from "../src/deciders/routing/address.ts";
import { Router } from "../src/deciders/routing/router.ts";
import { SEED } from "./models/seed.ts";
import { anyAddress, anyBinding, anyBindings, fits, oracleOf, standing } from "./routing-oracle.ts";

const routerOf = (bindings: readonly Binding[]): Router =>
  new Router({ agents: { main: {} }, unrouted: "default", bindings, lineOf: (index) => index + 1 });
const seeded = (numRuns: number) => ({ seed: SEED, numRuns });
const ADDRESSES = 50;

describe(`seed ${SEED}`, () => {
  // 1,500 × 50 + 500 × 50 = 100,000: few rules, and more than a leaf of the tree holds.
  test.each([
    { runs: 1_500, rules: 12 },
    { runs: 500, rules: 150 },
  ])("the router finds what the contract says, explains what it does, and has one winner ($runs configs of up to $rules rules)", (size) => {
    const met = new Map(["topic", "chat", "peer", "guild+type", "guild", "type", "platform", "default"].map((tier) => [tier, 0]));
    fc.assert(
      fc.property(
        anyBindings(size.rules),
        fc.array(anyAddress, { minLength: ADDRESSES, maxLength: ADDRESSES }),
        fc.nat(20),
        (bindings, addresses, limit) => {
          const [router, oracle] = [routerOf(bindings), oracleOf(bindings)];
          for (const address of addresses) {
            const tier = agrees(router, bindings, oracle(address), address, limit);
            met.set(tier, (met.get(tier) ?? 0) + 1);
          }
        },
      ),
      seeded(size.runs),
    );
    for (const [tier, count] of met) expect(count, `addresses that met the tier ${tier}`).toBeGreaterThan(100);
  });

  test("the order of the file matters only among rules that are equally specific", () => {
    const shuffled = anyBindings(40).chain((rules) =>
      fc.tuple(fc.constant(rules), fc.shuffledSubarray(rules, { minLength: rules.length, maxLength: rules.length })),
    );
    fc.assert(
      fc.property(shuffled, fc.array(anyAddress, { minLength: 10, maxLength: 10 }), ([rules, others], addresses) => {
        for (const address of addresses) {
          const one = winner(rules, address);
          const other = winner(others, address);
          expect(other && standing(other)).toEqual(one && standing(one));
          const tied = one ? rules.filter((rule) => fits(rule, address) && isEqual(standing(rule), standing(one))) : [];
          if (tied.length === 1) expect(other).toEqual(one);
          else if (tied.length > 1) expect(other).toEqual(others.find((rule) => tied.includes(rule)));
        }
      }),
      seeded(1_500),
    );
  });

  test("a rule that is added wins itself or changes nothing; a less specific one changes nothing", () => {
    fc.assert(
      fc.property(anyBindings(30), anyBinding, fc.nat(), anyAddress, (rules, rule, at, address) => {
        const added = { ...rule, agent: "added" };
        const before = winner(rules, address);
        const after = winner(rules.toSpliced(at % (rules.length + 1), 0, added), address);
        if (before && isLess(standing(added), standing(before))) expect(after).toEqual(before);
        else expect([before?.agent, "added"]).toContain(after?.agent);
        if (!fits(added, address)) expect(after).toEqual(before);
      }),
      seeded(5_000),
    );
  });
});

/** Answers the tier. What fails is thrown as text: 100,000 times `expect` would take a minute. */
function agrees(
  router: Router,
  bindings: readonly Binding[],
  expected: { readonly index: number; readonly tier: string } | null,
  address: Address,
  limit: number,
): string {
  const must = (holds: boolean, what: string, seen: unknown): void => {
    if (!holds) throw new Error(`${what}: ${JSON.stringify({ address, expected, seen })}`);
  };
  const decision = router.route(address);
  const { agent, tier, binding, because } = decision;
  must(agent === (expected ? `rule-${expected.index}` : "main") && tier === (expected?.tier ?? "default"), "another winner", decision);
  const explained = router.explain(address);
  const same = explained.agent === agent && explained.tier === tier && explained.binding === binding && explained.because === because;
  must(same && explained.trace.length === bindings.length, "explained otherwise", explained);
  const winner = `line ${(expected?.index ?? Number.NaN) + 1}`;
  for (const [index, line] of explained.trace.entries()) {
    must(line.line === index + 1 && line.hit === (index === expected?.index), "one line for each rule, one hit", line);
    // Only those that fit have lost to the winner; the others say what does not fit.
    const names = `${line.why},`.includes(` ${winner},`);
    must(line.hit || names === fits(bindings[index] as Binding, address), "lost for another reason", line);
  }
  const bounded = router.explain(address, limit);
  must(bounded.trace.length + (bounded.omitted ?? 0) === bindings.length, "rules neither told nor counted", bounded);
  const hits = bounded.trace.filter((line) => line.hit).map((line) => line.line);
  must(limit === 0 || hits.join() === (expected ? String(expected.index + 1) : ""), "a short trace without the winner", bounded);
  return tier;
}

function winner(bindings: readonly Binding[], address: Address): Binding | null {
  const { agent } = routerOf(bindings).route(address);
  return bindings.find((rule) => rule.agent === agent) ?? null;
}

type Standing = ReturnType<typeof standing>;
const isEqual = (a: Standing, b: Standing): boolean => a.place === b.place && a.names === b.names;
const isLess = (a: Standing, b: Standing): boolean => a.place > b.place || (a.place === b.place && a.names < b.names);
