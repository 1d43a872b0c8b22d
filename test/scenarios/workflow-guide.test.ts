import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import type { WorkflowRun } from "../../src/contract/workflows.ts";
import { Home } from "./guildhall.ts";

/** What is written in the guide is run as it stands there. */
const guide = readFileSync(new URL("../../docs/workflows.md", import.meta.url), "utf8");
const CONFIG = "model: offline/demo\nagents: { main: { default: true }, researcher: {}, writer: {} }\n";
const LONG = 60_000;

let home: Home;
beforeAll(async () => {
  home = new Home(CONFIG);
  mkdirSync(join(home.path, "workflows"), { recursive: true });
  for (const [, yaml = ""] of guide.matchAll(/```yaml\n([\s\S]+?)```/g))
    writeFileSync(join(home.path, "workflows", `${(parse(yaml) as { name: string }).name}.yaml`), yaml);
  await home.start();
});
afterAll(() => home.remove());

async function run(name: string, ...input: string[]): Promise<WorkflowRun> {
  const inputs = input.flatMap((each) => ["--input", each]);
  const { code, stdout, stderr } = await home.run(["workflow", "run", name, ...inputs, "--json"]);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as WorkflowRun;
}
const states = ({ steps }: WorkflowRun): Record<string, string> => Object.fromEntries(steps.map(({ id, status }) => [id, status]));

test(
  "release-notes: branches run, and what its condition rules out is skipped without asking a person",
  async () => {
    const done = await run("release-notes", "version=nightly");
    expect(states(done)).toEqual({ facts: "completed", notes: "completed", post: "completed", publish: "skipped" });
    expect(Object.keys(done.outputs)).toEqual(["notes", "post"]);
  },
  LONG,
);

test(
  "audit: one step for each item of the list",
  async () => {
    const done = await run("audit", "team=x");
    expect(states(done)).toMatchObject({ find: "completed", look: "completed", "look[0]": "completed", report: "completed" });
    expect(done.outputs.report).toContain("Sum it up");
  },
  LONG,
);

test(
  "answer: one of two ways is taken, both write the same key",
  async () => {
    const done = await run("answer", "mail=hello");
    expect(states(done)).toEqual({ sort: "completed", sorry: "skipped", thanks: "completed", log: "skipped" });
    expect(done.outputs.reply).toContain("Say thank you");
    expect(states(await run("answer", "mail=hello", "log=true"))).toMatchObject({ log: "completed" });
  },
  LONG,
);
