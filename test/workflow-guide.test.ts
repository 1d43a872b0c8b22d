import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { STALE_RULES, STEP_STATES, WORKFLOW_STATES } from "../src/contract/workflows.ts";
import { checkWorkflow } from "../src/deciders/planning/check-workflow.ts";
import { loadConditions } from "../src/deciders/planning/load-conditions.ts";
import { readWorkflow, workflowOfValue } from "../src/settings/load-workflow.ts";

const root = new URL("..", import.meta.url).pathname;
const guide = readFileSync(join(root, "docs/workflows.md"), "utf8");
const conditions = await loadConditions();
const around = { agents: ["researcher", "writer", "coder", "main"], conditions };

test("every workflow in the guide is sound", () => {
  const blocks = [...guide.matchAll(/```yaml\n([\s\S]+?)```/g)].map(([, yaml]) => yaml as string);
  expect(blocks.length).toBeGreaterThanOrEqual(3);
  for (const yaml of blocks) expect(checkWorkflow(workflowOfValue(parse(yaml)), around).problems, yaml).toEqual([]);
});

test("every example file is sound", async () => {
  const files = readdirSync(join(root, "docs/examples")).filter((name) => name.endsWith(".yaml"));
  expect(files).toContain("stripe-client.yaml");
  for (const name of files) expect(checkWorkflow(await readWorkflow(join(root, "docs/examples", name)), around).problems, name).toEqual([]);
});

test("the guide names every state and every rule for what is stale", () => {
  for (const word of [...STEP_STATES, ...WORKFLOW_STATES, ...STALE_RULES]) expect(guide, word).toContain(`\`${word}\``);
});

test("the guide names every problem that is found before a run, and no other", () => {
  const [, table = ""] = /## Found before anything runs\n([\s\S]+?)\n## /.exec(guide) ?? [];
  const named = [...table.matchAll(/`(?:workflow)?\.([a-z_]+)`/g)].map(([, code]) => code as string);
  const folder = join(root, "src/deciders/planning");
  const sources = readdirSync(folder).filter((name) => name.endsWith("-problems.ts"));
  const found = sources.flatMap((name) =>
    [...readFileSync(join(folder, name), "utf8").matchAll(/"workflow\.([a-z_]+)"/g)].map(([, code]) => code as string),
  );
  expect([...new Set(named)].toSorted()).toEqual([...new Set(found)].toSorted());
});
