import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MAX_WORKFLOW_BYTES, namedWorkflow, readWorkflow, workflowNames, workflowOfValue } from "./load-workflow.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-workflow-"));
  mkdirSync(join(home, "workflows"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(home, "workflows", name);
  writeFileSync(file, text);
  return file;
}
const SMALL = "name: small\nsteps:\n  - { id: a, goal: g }\n";

describe("a file", () => {
  test("is read with its defaults, as YAML or JSON", async () => {
    const { workflow, problems } = await readWorkflow(write("small.yaml", SMALL));
    expect(problems).toEqual([]);
    expect(workflow).toMatchObject({
      name: "small",
      shared_context: true,
      on_stale: "rerun",
      steps: [{ id: "a", needs: [], reads: [], writes: [] }],
    });
    const json = await readWorkflow(write("small.json", JSON.stringify({ name: "small", steps: [{ id: "a", goal: "g" }] })));
    expect(json.workflow).toEqual(workflow);
  });

  test("that is wrong says where, what was expected, and the nearest name", async () => {
    const file = write(
      "wrong.yaml",
      "name: wrong\non_stale: reran\nsteps:\n  - id: a\n    gaol: g\n    retry: { attempts: 0 }\n  - { id: 7, goal: g }\n",
    );
    const { workflow, problems } = await readWorkflow(file);
    expect(workflow).toBeNull();
    expect(problems.map(({ code, path, line, column, message }) => `${line}:${column} ${code} ${path.join(".")}: ${message}`)).toEqual([
      '2:11 workflow.wrong_value on_stale: expected rerun, rebase, warn or fail, found "reran" (did you mean "rerun"?)',
      "4:5 workflow.missing_key steps.0.goal: `goal` is missing; expected a text",
      "6:24 workflow.wrong_value steps.0.retry.attempts: expected at least 1, found 0",
      '5:5 workflow.unknown_key steps.0.gaol: unknown key (did you mean "goal"?)',
      "7:11 workflow.wrong_type steps.1.id: expected a text, found 7",
    ]);
    for (const problem of problems) expect(problem).toMatchObject({ file, severity: "error", fix: expect.any(String) });
  });

  test("that is no YAML says where", async () => {
    const { workflow, problems } = await readWorkflow(write("broken.yaml", "name: a\nsteps: [\n"));
    expect(workflow).toBeNull();
    expect(problems).toMatchObject([
      { severity: "error", code: "workflow.malformed", line: 3, message: expect.stringContaining("not valid YAML") },
    ]);
  });

  test("that is empty lacks everything", async () => {
    const { problems } = await readWorkflow(write("empty.yaml", ""));
    expect(problems.map(({ code, path }) => [code, ...path])).toEqual([
      ["workflow.missing_key", "name"],
      ["workflow.missing_key", "steps"],
    ]);
  });

  test("keeps names with a dollar as they are, in values and keys", async () => {
    const dollar = "$";
    const text = `name: w\nkeys: { "${dollar}{KEY}": {} }\nsteps:\n  - { id: a, goal: "echo ${dollar}{HOME} ${dollar}${dollar}{HOME}" }\n`;
    const { workflow, problems } = await readWorkflow(write("dollar.yaml", text));
    expect(problems).toEqual([]);
    expect(workflow?.steps[0]?.goal).toBe(`echo ${dollar}{HOME} ${dollar}${dollar}{HOME}`);
    expect(Object.keys(workflow?.keys ?? {})).toEqual([`${dollar}{KEY}`]);
  });

  test("that is large is read all the same, up to a bound", async () => {
    const steps = Array.from({ length: 900 }, (_, index) => `  - { id: s${index}, goal: "${"x".repeat(60)} \${NAME}" }\n`);
    const { workflow } = await readWorkflow(write("large.yaml", `name: large\nsteps:\n${steps.join("")}`));
    expect(workflow?.steps).toHaveLength(900);
    expect(workflow?.steps[899]?.goal).toMatch(/x \$\{NAME\}$/);
    const huge = write("huge.yaml", SMALL);
    truncateSync(huge, MAX_WORKFLOW_BYTES + 1);
    expect(await readWorkflow(huge)).toMatchObject({ workflow: null, problems: [{ code: "workflow.too_large" }] });
  });

  test("that is none, or cannot be read as text, is refused", async () => {
    await expect(readWorkflow(join(home, "nowhere.yaml"))).rejects.toMatchObject({ code: "workflow.unknown" });
    expect((await readWorkflow(home)).problems).toMatchObject([{ code: "workflow.unreadable", message: "this is no file" }]);
    const latin = join(home, "latin.yaml");
    writeFileSync(latin, Buffer.from([0x6e, 0xe4, 0xf6]));
    expect((await readWorkflow(latin)).problems).toMatchObject([
      { code: "workflow.malformed", message: "the file is not written in UTF-8" },
    ]);
  });

  test("cannot reach an object's prototype", async () => {
    const { problems } = await readWorkflow(write("proto.yaml", "name: w\nsteps: []\nkeys: { __proto__: {} }\n"));
    expect(problems).toMatchObject([{ code: "workflow.forbidden_key", line: 3 }]);
  });
});

describe("a name", () => {
  test("stands for a file of the folder, YAML before JSON", () => {
    write("both.json", "{}");
    const yaml = write("both.yaml", SMALL);
    const yml = write("other.yml", SMALL);
    write("no workflow.yaml", SMALL);
    write("notes.txt", "");
    expect(namedWorkflow(home, "both")).toBe(yaml);
    expect(workflowNames(home)).toEqual([
      { name: "both", file: yaml },
      { name: "other", file: yml },
    ]);
  });

  test.each(["../guildhall", "..", "a/b", "/etc/passwd", "", "a\0b", "-x", "nobody"])("never leads out of it: %j", (name) => {
    writeFileSync(join(home, "guildhall.yaml"), "{}");
    expect(() => namedWorkflow(home, name)).toThrow(expect.objectContaining({ code: "workflow.unknown" }));
  });

  test("of a link that leads out of it is none", () => {
    const outside = join(home, "outside.yaml");
    writeFileSync(outside, SMALL);
    symlinkSync(outside, join(home, "workflows", "link.yaml"));
    expect(() => namedWorkflow(home, "link")).toThrow(expect.objectContaining({ code: "workflow.unknown" }));
    expect(workflowNames(home)).toEqual([]);
  });

  test("that is misspelt is told the nearest", () => {
    write("report.yaml", SMALL);
    expect(() => namedWorkflow(home, "raport")).toThrow('did you mean "report"');
    expect(workflowNames(join(home, "nowhere"))).toEqual([]);
  });
});

test("a workflow that came as a value is read by the same rules, without lines", () => {
  expect(workflowOfValue({ name: "w", steps: [{ id: "a", goal: "g" }] })).toMatchObject({
    file: null,
    problems: [],
    workflow: { name: "w" },
  });
  expect(workflowOfValue({ name: "w", steps: [{ id: "a", goal: "g", nedds: [] }] }).problems).toEqual([
    {
      severity: "error",
      code: "workflow.unknown_key",
      path: ["steps", 0, "nedds"],
      file: null,
      line: null,
      column: null,
      message: 'unknown key (did you mean "needs"?)',
      fix: "Write needs instead.",
    },
  ]);
  for (const value of [null, undefined, 3, "text", [], { steps: {} }]) expect(workflowOfValue(value).workflow).toBeNull();
});
