import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkWorkflowFile, readWorkflowFile } from "../src/daemon/local-workflow.ts";
import { checkWorkflow, soundWorkflow } from "../src/deciders/planning/check-workflow.ts";
import { loadConditions } from "../src/deciders/planning/load-conditions.ts";
import { workflowOfValue } from "../src/settings/load-workflow.ts";

const CLI = new URL("../bin/guildhall.js", import.meta.url).pathname;
const EXAMPLE = new URL("../docs/examples/stripe-client.yaml", import.meta.url).pathname;
const AGENTS = "agents:\n  main: {}\n  researcher: {}\n  coder: {}\n";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-check-"));
  mkdirSync(join(home, "workflows"));
  writeFileSync(join(home, "guildhall.yaml"), AGENTS);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(text: string): string {
  const file = join(home, "workflows", "flow.yaml");
  writeFileSync(file, text);
  return file;
}
const WRONG = `name: wrong
keys:
  unused: { policy: append }
steps:
  - { id: research, agent: reseacher, goal: "Research {{inputs.api}}", writes: [findings] }
  - { id: build, needs: [reserch], reads: [findings], goal: g }
`;

describe("workflow check", () => {
  test("finds nothing wrong with the example of the guide", async () => {
    expect(await checkWorkflowFile({ home }, EXAMPLE)).toEqual({ ok: true, file: EXAMPLE, problems: [] });
  });

  test("finds everything at once, errors first, each with its line and the text there", async () => {
    const file = write(WRONG);
    const { ok, problems } = await checkWorkflowFile({ home }, "flow");
    expect(ok).toBe(false);
    expect(problems.map(({ severity, code, line, column, path }) => `${severity} ${code} ${line}:${column} ${path.join(".")}`)).toEqual([
      "error workflow.unknown_agent 5:28 steps.0.agent",
      "error workflow.bad_template 5:45 steps.0.goal",
      "error workflow.unknown_step 6:26 steps.1.needs.0",
      "warning workflow.unused_key 3:3 keys.unused",
    ]);
    expect(problems[2]).toMatchObject({ file, fix: "Write research.", source: { text: WRONG.split("\n")[5], caret: 25 } });
  });

  test("prints blocks as `config check` does, and exits 2 on an error, 0 without", () => {
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [CLI, "--home", home, "workflow", "check", ...args], { encoding: "utf8" });
    const file = write(WRONG);
    const told = run("flow");
    expect(told.status).toBe(2);
    expect(told.stdout).toContain(
      `error: steps.1.needs.0: there is no step reserch (did you mean "research"?) [workflow.unknown_step]\n  at ${file}:6:26\n`,
    );
    expect(told.stdout).toContain(`${file}: 3 errors, 1 warning`);
    const json = JSON.parse(run(file, "--json").stdout) as { ok: boolean; problems: object[] };
    expect(json.ok).toBe(false);
    expect(json.problems[0]).toEqual({
      severity: "error",
      code: "workflow.unknown_agent",
      path: ["steps", 0, "agent"],
      file,
      line: 5,
      column: 28,
      message: 'there is no agent reseacher (did you mean "researcher"?)',
      fix: "Write researcher.",
    });
    expect(run(EXAMPLE).stdout).toBe(`${EXAMPLE}: no problems\n`);
    expect(run(EXAMPLE).status).toBe(0);
    expect(run("nowhere").status).toBe(2);
  });

  test("a config that cannot be read is no reason to call agents unknown", async () => {
    writeFileSync(join(home, "guildhall.yaml"), "{{");
    expect((await checkWorkflowFile({ home }, EXAMPLE)).ok).toBe(true);
  });
});

test("a file is handed to a daemon as it is written, and not at all while it is wrong", async () => {
  expect(await readWorkflowFile({ home }, EXAMPLE)).toMatchObject({ name: "stripe-client", outputs: ["client"] });
  write(WRONG);
  await expect(readWorkflowFile({ home }, "flow")).rejects.toMatchObject({
    code: "workflow.invalid",
    message: expect.stringMatching(/flow\.yaml:5:28: steps\.0\.agent: there is no agent reseacher .* \(and 2 more\)$/),
    hint: "Write researcher.",
    details: { problems: { length: 4 } },
  });
});

test("a value with more problems than anybody reads tells the first hundred", async () => {
  const steps = Array.from({ length: 300 }, (_, index) => ({ id: `s${index}`, goal: "g", needs: ["nobody"] }));
  const read = workflowOfValue({ name: "many", steps });
  const conditions = await loadConditions();
  expect(checkWorkflow(read, { conditions }).problems).toHaveLength(100);
  expect(() => soundWorkflow(read, { conditions })).toThrow("steps.0.needs.0: there is no step nobody (and 99 more)");
});

test("warnings alone stop nothing", async () => {
  const read = workflowOfValue({ name: "w", keys: { unused: {} }, steps: [{ id: "a", goal: "g" }] });
  expect(soundWorkflow(read, { conditions: await loadConditions() }).name).toBe("w");
});

test("a daemon that starts loads no CEL", () => {
  const program = `import { registerHooks } from "node:module";
    const seen = [];
    registerHooks({ resolve: (name, context, next) => { const found = next(name, context); seen.push(found.url); return found; } });
    await import("./src/daemon/daemon.ts");
    console.log(JSON.stringify(seen));`;
  const cwd = new URL("..", import.meta.url).pathname;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd, encoding: "utf8" });
  expect(stderr).toBe("");
  const loaded = JSON.parse(stdout) as string[];
  expect(loaded.length).toBeGreaterThan(100);
  expect(loaded.filter((url) => url.includes("cel-js"))).toEqual([]);
});
