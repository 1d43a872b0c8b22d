// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Environment } from "./home.ts";
import { inspectSettings, type LoadOptions, loadSettings, type Settings } from "./load-settings.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-settings-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function load(yaml: string, environment: Environment = {}, options: LoadOptions = {}): Settings {
  writeFileSync(join(home, "guildhall.yaml"), yaml);
  return loadSettings({ home }, environment, options);
}

describe("a config", () => {
  test("may be JSON, with or without tabs", () => {
    const json = { agents: { main: { default: true, env: { A: "${B}" } }, ops: null }, server: { port: 1 } };
    for (const indent of [undefined, 2, "\t"]) {
      const { config } = load(JSON.stringify(json, null, indent), { B: "value of b" });
      expect(config.server.port).toBe(1);
      expect(config.agents.main?.env.A?.reveal()).toBe("value of b");
    }
  });

  test("takes numbers and yes or no from the environment where it wants them", () => {
    const yaml = "server: { port: ${PORT} }\nchannels: { telegram: { require_mention: ${M} } }\n";
    expect(load(yaml, { PORT: "81", M: "false" }).config).toMatchObject({
      server: { port: 81 },
      channels: { telegram: { require_mention: false } },
    });
    expect(() => load(yaml, { PORT: "0x51", M: "false" })).toThrow(/server\.port: expected a number, found "\$\{PORT\}"/);
  });
});

/** Each in the section of `bad`, with the line and column of the mistake and the beginning of the message. */
const BROKEN: [section: string, place: string, message: string][] = [
  ["modle: a/b", "4:5", 'unknown key (did you mean "model"?)'],
  ["model: gpt", "4:12", "expected <provider>/<model>"],
  ["tools: codng", "4:12", "expected minimal, messaging, coding or full, or a list or a map"],
  ["tools: [file_read, web_serach]", "4:24", 'there is no tool "web_serach" (did you mean "web_search"?)'],
  ["tools: { profil: full }", "4:14", 'unknown key (did you mean "profile"?)'],
  ["tools: { deny: [group:ffs] }", "4:21", 'there is no group "group:ffs"'],
  ["env: { A: ${MISSING} }", "4:15", "${MISSING} is not set"],
  ["personality: ${MISSING}", "4:18", "${MISSING} is not set"],
  ["sees: [man]", "4:12", 'there is no agent "man" (did you mean "main"?)'],
  ["sees: ops", "4:11", 'expected "*", or a list'],
  ["subagents: { agents: [{ id: man, rights: own }] }", "4:33", 'there is no agent "man"'],
  ["subagents: { max_depth: 99 }", "4:29", "expected at most 10, found 99"],
  ["default: true", "4:14", "only one agent can be the default, and main is"],
  ["shared_paths: [{ path: agents/main/workspace }]", "4:28", "this is another agent's private folder"],
  ["shared_paths: [{ path: .. }]", "4:28", "this folder holds the home"],
  ["shared_paths: [{ path: a/docs }, { path: b/docs }]", "4:46", 'two shared paths would both be called "docs"'],
  ["mcp: { files: { comand: x } }", "4:21", 'unknown key (did you mean "command"?)'],
  ["mcp: { files: {} }", "4:19", "a server has a `command` or a `url`"],
  ["{ model: offline/demo, model: offline/demo }", "4:28", 'the key "model" stands here twice'],
  ["env: { A: first, A: second }", "4:22", 'the key "A" stands here twice'],
  ["env: { ${A}: x }", "4:12", "names such as ${NAME} are replaced in values"],
  ["model: *nowhere", "4:12", "there is no anchor &nowhere"],
  ["<<: { roles: [x] }", "4:5", "keys are not merged"],
  ["mcp: { files: { command: x, headers: {} } }", "4:33", "this key does not go with the others here"],
  ["tools: none", "4:12", 'a list or a map, found "none"'],
  ["tools:", "4:11", "expected minimal, messaging, coding or full, or a list or a map, found nothing"],
  ["env: lit-secret-one", "4:10", "expected a map, found a text"],
  ["state: pausd", "4:12", 'expected active, paused or archived, found "pausd" (did you mean "paused"?)'],
];

describe("a mistake in one agent's section takes out that agent alone", () => {
  test.each(BROKEN)("%s", (section, place, message) => {
    const { config, quarantined } = load(`agents:\n  main: { default: true }\n  bad:\n    ${section}\n  ops: { roles: [x] }\n`);
    const [problem, ...more] = quarantined.get("bad") ?? [];
    expect(problem?.message).toContain(message);
    expect(problem).toMatchObject({ severity: "error", file: join(home, "guildhall.yaml") });
    expect(`${problem?.line}:${problem?.column}`).toBe(place);
    expect(problem?.fix).not.toBe("");
    expect(more).toEqual([]);
    expect([...quarantined.keys()]).toEqual(["bad"]);
    expect(config.agents.bad).toMatchObject({ env: {}, sees: [], shared_paths: [], mcp: {}, roles: [] });
    expect(config.agents.bad?.default).toBeUndefined();
    expect(config.agents.ops?.roles).toEqual(["x"]);
  });

  test("its default flag stays, so that what is its own goes to no other", () => {
    const { config, quarantined } = load("agents:\n  main: {}\n  bad: { default: true, modle: x }\n");
    expect([...quarantined.keys()]).toEqual(["bad"]);
    expect(config.agents.bad).toMatchObject({ default: true });
  });

  test.each([
    ["Coder", "an agent's id is 1 to 64 lowercase letters", "Write coder instead."],
    ["a b", "an agent's id is 1 to 64 lowercase letters", "Write a-b instead."],
    ["../x", "an agent's id is 1 to 64 lowercase letters", "Write x instead."],
    ["operator", "this name is reserved", "Choose another id."],
    ["\u0441oder", 'the character "\u0441" (U+0441) in the id is not a plain one', "Type the id again"],
    ["co\u200bder", "the character U+200B in the id is not a plain one", "Type the id again"],
  ])("an id that is none is out of the config as well: %j", (id, message, fix) => {
    const { config, quarantined } = load(`agents:\n  main: {}\n  "${id}": { default: true }\n`);
    expect(Object.keys(config.agents)).toEqual(["main"]);
    const [problem] = quarantined.get(id) ?? [];
    expect(problem?.message).toContain(message);
    expect(problem?.fix).toContain(fix);
    expect(problem).toMatchObject({ line: 3, column: 3, code: "config.bad_id" });
  });

  test("a default agent whose id is none leaves no default, and not main or the only other one instead", () => {
    for (const other of ["main", "ops"]) {
      const { config, warnings } = load(`agents:\n  ${other}: {}\n  Coder: { default: true }\n`);
      expect(config.unrouted).toBe("refuse");
      expect(warnings).toMatchObject([{ code: "config.no_default", line: 3, path: "agents.Coder.default" }]);
    }
    expect(load("agents:\n  main: { default: true }\n  Coder: { default: true }\n").config.unrouted).toBe("default");
  });

  test("all agents may be broken, and the rest is sound", () => {
    const { config, quarantined } = load("agents:\n  main: { modle: x }\nserver: { port: 5 }\n");
    expect(quarantined.size).toBe(1);
    expect(config.server.port).toBe(5);
  });
});

test("a mistake anywhere else refuses the whole, and every problem is told", () => {
  writeFileSync(
    join(home, "guildhall.yaml"),
    "agents:\n  main: { modle: x }\nbindings: [{ agent: mian, telegram: 1 }]\nstor: x\nmodel: ${M}\n",
  );
  const { settings, problems } = inspectSettings({ home }, {});
  expect(settings).toBeNull();
  expect(problems.map(({ path, code, line }) => `${line} ${path} ${code}`)).toEqual([
    "2 agents.main.modle config.unknown_key",
    "3 bindings.0.agent config.unknown_agent",
    "4 stor config.unknown_key",
    "5 model config.unset_name",
  ]);
});

describe("tools by name", () => {
  test("the program around us may bring its own", () => {
    const yaml = "agents: { main: { tools: [file_read, order_pizza] } }\n";
    expect(load(yaml).quarantined.size).toBe(1);
    expect(load(yaml, {}, { knownTools: ["order_pizza"] }).quarantined.size).toBe(0);
  });

  test("aliases, groups and wildcards are names; what matches nothing is a warning", () => {
    const yaml =
      "agents: { main: { mcp: { files: { command: x } }, tools: [web_extract, memory, group:fs, mail_*, xyz_*, mcp__files__*, mcp__fils__read] } }\n";
    const { quarantined, warnings } = load(yaml);
    expect(quarantined.size).toBe(0);
    expect(warnings.map(({ code, message }) => `${code}: ${message}`)).toEqual([
      'config.matches_nothing: no tool matches "xyz_*"',
      'config.unknown_server: the agent has no MCP server "fils" (did you mean "files"?)',
    ]);
  });
});
