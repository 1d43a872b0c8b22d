import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Home } from "./guildhall.ts";

let home: Home;
beforeAll(() => {
  home = new Home("model: offline/demo\nagents:\n  main: { default: true }\n  coder:\n    modle: x\n");
});
afterAll(() => home.remove());

test("config check shows each problem with its line, ends with 2 on an error and with 0 without one", async () => {
  const { code, stdout, stderr } = await home.run(["config", "check"]);
  const file = join(home.path, "guildhall.yaml");
  expect({ code, stderr }).toEqual({ code: 2, stderr: "" });
  expect(stdout).toBe(`error: agents.coder.modle: unknown key (did you mean "model"?) [config.unknown_key]
  at ${file}:5:5
  5 |     modle: x
    |     ^
  fix: Write model instead.

${file}: 1 error, 0 warnings
`);
  const sound = join(home.path, "sound.yaml");
  writeFileSync(sound, "model: offline/demo\n");
  expect(await home.run(["config", "check", sound])).toMatchObject({ code: 0, stdout: `${sound}: no problems\n` });
  expect((await home.run(["config", "check", join(home.path, "none.yaml")])).code).toBe(2);
});

test("config check for programs", async () => {
  const { code, stdout } = await home.run(["config", "check", "--json"]);
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toEqual({
    ok: false,
    file: join(home.path, "guildhall.yaml"),
    problems: [
      {
        severity: "error",
        code: "config.unknown_key",
        path: "agents.coder.modle",
        file: join(home.path, "guildhall.yaml"),
        line: 5,
        column: 5,
        message: 'unknown key (did you mean "model"?)',
        fix: "Write model instead.",
      },
    ],
  });
});

test("config explain tells a value and where it comes from; what is no key is wrong usage", async () => {
  const { code, stdout } = await home.run(["config", "explain", "agents.main.model"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^agents\.main\.model = offline\/demo\n {2}inherited from model \(line 1\)\n {2}read by .*drivers\/dispatch/);
  const unknown = await home.run(["config", "explain", "agents.mian.model"]);
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain('did you mean "agents.main"?');
});

test("config schema is JSON Schema", async () => {
  const { code, stdout } = await home.run(["config", "schema"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ $schema: expect.stringContaining("json-schema.org"), type: "object" });
});

test("a broken section at the start: the others answer, and the log names file, line and what to write", async () => {
  const daemon = await home.start();
  const { runId, agent } = await daemon.send({ id: "1" });
  expect(agent).toBe("main");
  expect(await daemon.finished(runId)).toMatchObject({ status: "completed" });
  const { stderr } = await daemon.kill("SIGTERM");
  expect(stderr).toMatch(/quarantined.*guildhall\.yaml:5:5.*Write model instead/);
});
