import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import type { StepState, Workflow } from "../src/contract/workflows.ts";
import { checkWorkflow, soundWorkflow } from "../src/deciders/planning/check-workflow.ts";
import { compileWorkflow } from "../src/deciders/planning/compile.ts";
import { loadConditions } from "../src/deciders/planning/load-conditions.ts";
import { candidatesAfter, plan, restsOn } from "../src/deciders/planning/plan.ts";
import { rerunPlan } from "../src/deciders/planning/rerun.ts";
import { renderTemplate } from "../src/deciders/planning/templates.ts";
import { workflowOfValue } from "../src/settings/load-workflow.ts";

const written = parse(readFileSync(new URL("../docs/examples/stripe-client.yaml", import.meta.url), "utf8")) as Record<string, unknown>;
const conditions = await loadConditions();
const around = { agents: ["researcher", "coder", "main"], conditions };

const NAMES: Readonly<Record<string, string>> = {
  research: "zz-look",
  implement: "make",
  test: "A_try",
  ship: "b",
  api_findings: "what was found",
  client: "c.d/e",
};

/** The example with every step and key called otherwise, and its steps in the order of the file turned round. */
function otherwise(value: unknown, isName = false): unknown {
  if (typeof value === "string") return isName ? (NAMES[value] ?? value) : value.replace("outputs.client", 'outputs["c.d/e"]');
  if (Array.isArray(value)) return value.map((each) => otherwise(each, isName));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key === "keys")
        return [key, Object.fromEntries(Object.entries(inner as object).map(([name, contract]) => [NAMES[name], contract]))];
      if (key === "steps") return [key, (otherwise(inner) as unknown[]).toReversed()];
      return [key, otherwise(inner, ["id", "needs", "reads", "writes", "outputs"].includes(key))];
    }),
  );
}

const forms: [string, unknown, (name: string) => string][] = [
  ["as it stands", written, (name) => name],
  ["with other names and in another order", otherwise(written), (name) => NAMES[name] as string],
];

test.each(forms)("the example is sound, %s", (_how, value) => {
  expect(checkWorkflow(workflowOfValue(value), around).problems).toEqual([]);
});

test.each(forms)(
  "the example goes from step to step, asks a person before it ships, and ships only a client that is there: %s",
  (_how, value, named) => {
    const definition: Workflow = soundWorkflow(workflowOfValue(value), around);
    const compiled = compileWorkflow(definition, conditions);
    const [research, implement, tests, ship, client] = ["research", "implement", "test", "ship", "client"].map(named) as [
      string,
      string,
      string,
      string,
      string,
    ];
    expect(compiled.order).toEqual([research, implement, tests, ship]);
    expect(renderTemplate(compiled.steps.get(research)?.step.goal as string, { input: { api: "Stripe" } })).toBe("Research the Stripe API");

    const states = new Map<string, StepState>();
    const facts = (outputs: Record<string, unknown>) => ({ states, values: { input: { api: "Stripe" }, outputs, steps: {} } });
    for (const [done, next] of [
      [research, implement],
      [implement, tests],
    ] as const) {
      expect(plan(compiled, facts({}), [done])).toMatchObject([{ action: "start" }]);
      states.set(done, "running");
      expect(plan(compiled, facts({}), candidatesAfter(compiled, done))).toMatchObject([{ step: next, action: "wait" }]);
      states.set(done, "completed");
      expect(candidatesAfter(compiled, done)).toEqual([next]);
    }
    states.set(tests, "completed");
    expect(plan(compiled, facts({ [client]: "code" }), [ship])).toMatchObject([{ step: ship, action: "review" }]);
    expect(plan(compiled, facts({ [client]: null }), [ship])).toMatchObject([{ step: ship, action: "skip" }]);

    expect(restsOn(compiled, [implement])).toEqual([tests, ship]);
    states.set(ship, "completed");
    expect(rerunPlan(compiled, states, [tests])).toEqual({ reused: [research, implement], again: [tests, ship] });
  },
);
