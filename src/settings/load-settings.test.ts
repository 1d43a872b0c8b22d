// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Failure } from "../kernel/failure.ts";
import type { Environment } from "./home.ts";
import { inspectSettings, loadSettings, type Settings } from "./load-settings.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-settings-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function load(yaml: string, environment: Environment = {}): Settings {
  writeFileSync(join(home, "guildhall.yaml"), yaml);
  return loadSettings({ home }, environment);
}

/** The message without the folder, which is another one each time. */
function refusal(yaml: string, environment: Environment = {}): string {
  try {
    load(yaml, environment);
  } catch (error) {
    if (error instanceof Failure && error.code === "config.invalid") return error.message.replaceAll(`${home}/`, "");
    throw error;
  }
  throw new Error("the config was accepted");
}

describe("where things are", () => {
  test("without a file there is one agent, main, and SQLite in the home", () => {
    const settings = loadSettings({ home }, {});
    expect(settings).toMatchObject({
      configFile: null,
      config: { agents: { main: {} } },
      storeLocation: `sqlite:${join(home, "state.db")}`,
    });
  });

  test("an empty file is as good as none", () => {
    expect(load("# nothing yet\n").config.server).toEqual({ host: "127.0.0.1", port: 4270 });
  });

  test("the home is the option, else the environment", () => {
    expect(loadSettings({}, { GUILDHALL_HOME: home }).home).toBe(home);
    expect(loadSettings({ home }, { GUILDHALL_HOME: "/elsewhere" }).home).toBe(home);
  });

  test("a config file that was named must exist", () => {
    expect(() => loadSettings({ home, config: join(home, "other.yaml") }, {})).toThrow(/other\.yaml does not exist/);
  });

  test("the store is the config's, else the environment's", () => {
    expect(load("store: postgres://db/one\n", { GUILDHALL_STORE: "postgres://db/two" }).storeLocation).toBe("postgres://db/one");
    expect(load("", { GUILDHALL_STORE: "postgres://db/two" }).storeLocation).toBe("postgres://db/two");
    expect(() => load("", { GUILDHALL_STORE: "mysql://db" })).toThrow(/GUILDHALL_STORE/);
  });
});

describe("problems name their place", () => {
  test.each([
    ["agnets: {}\n", 'guildhall.yaml:1:1: agnets: unknown key (did you mean "agents"?)'],
    ["unrouted: refus\n", 'guildhall.yaml:1:11: unrouted: expected default or refuse, found "refus" (did you mean "refuse"?)'],
    ["server:\n  port: many\n", 'guildhall.yaml:2:9: server.port: expected a number, found "many"'],
    ["server:\n  port: 70000\n", "guildhall.yaml:2:9: server.port: expected at most 65535, found 70000"],
    ["agents: 7\n", "guildhall.yaml:1:9: agents: expected a map, found 7"],
    [
      "tools: codng\n",
      'guildhall.yaml:1:8: tools: expected minimal, messaging, coding or full, or a list or a map, found "codng" (did you mean "coding"?)',
    ],
    ["bindings:\n  - { agent: main, telegrm: 1 }\n", 'guildhall.yaml:2:20: bindings.0.telegrm: unknown key (did you mean "telegram"?)'],
    ["bindings:\n  - { telegram: 1 }\n", "guildhall.yaml:2:5: bindings.0.agent: `agent` is missing; expected a text"],
    [
      "bindings: [{ agent: mian, telegram: 1 }]\n",
      'guildhall.yaml:1:21: bindings.0.agent: there is no agent "mian" (did you mean "main"?)',
    ],
    ["bindings: [{ agent: main, telegram: [1] }]\n", 'guildhall.yaml:1:37: bindings.0.telegram: expected an id, or "*", found a list'],
    [
      "pools: { house: { keys: { facts: { policy: appnd } } } }\n",
      'guildhall.yaml:1:44: pools.house.keys.facts.policy: expected reject, last_write, append, merge, max, min or union, found "appnd" (did you mean "append"?)',
    ],
    ["tools: { deny: [termnal] }\n", 'guildhall.yaml:1:17: tools.deny.0: there is no tool "termnal" (did you mean "terminal"?)'],
    ["tools: [group:ffs]\n", 'guildhall.yaml:1:9: tools.0: there is no group "group:ffs" (did you mean "group:fs"?)'],
    [
      "bindings: [{ agent: main, discord: 1234567890123456789 }]\n",
      "guildhall.yaml:1:36: bindings.0.discord: as a number, 1234567890123456789 becomes 1234567890123456800",
    ],
    [
      "bindings: [{ agent: main, whatsapp: +4915112345 }]\n",
      "guildhall.yaml:1:37: bindings.0.whatsapp: as a number, +4915112345 becomes 4915112345",
    ],
    [
      "bindings: [{ agent: main, slack: C1, topic: 1712345678.000000 }]\n",
      "guildhall.yaml:1:45: bindings.0.topic: as a number, 1712345678.000000 becomes 1712345678",
    ],
    ["identities: { jon: [telegram] }\n", "guildhall.yaml:1:21: identities.jon.0: expected <platform>:<sender id>, for example telegram:7"],
    ['pools:\n  1: {}\n  "1": {}\n', 'guildhall.yaml:3:3: pools.1: the key "1" stands here twice'],
    ["${MODEL}: x\n", "guildhall.yaml:1:1: ${MODEL}: names such as ${NAME} are replaced in values, not in keys"],
    ["a: 1\nb: x\uEFF1y\n", "guildhall.yaml:2:5: the characters U+EFF0 to U+EFF2 cannot be used"],
    ["model: gpt\n", "guildhall.yaml:1:8: model: expected <provider>/<model>, for example offline/demo"],
    ["store: mysql\n", "guildhall.yaml:1:8: store: expected sqlite or postgres://…"],
    ["- 1\n", "guildhall.yaml:1:1: expected a map, found a list"],
    ["model: offline/demo\nmodel: offline/demo\n", 'guildhall.yaml:2:1: model: the key "model" stands here twice'],
    ["a: !!js/function x\n", "guildhall.yaml:1:4: not valid YAML: tags, such as !name, are not supported"],
    ["model: *nowhere\n", "guildhall.yaml:1:8: model: there is no anchor &nowhere"],
  ])("%j", (yaml, message) => {
    expect(refusal(yaml)).toBe(message);
  });

  test.each([
    ["agents:\n\tmain: {}\n", "2:1", "Indent with spaces"],
    ["agents:\n  main: {}\n   coder: {}\n", "3:1", "the same number of spaces"],
    ["personality: Note: be brief\n", "1:14", "Put the text after the first colon in quotes."],
    ['model: offline/demo\npersonality: "Be brief\nagents: { main: {} }\n', "2:14", "Close it where the text ends."],
    ["agents: { main: {}\n", "2:1", "Close every { and ["],
    ["agents: { main: {} }\n---\nmodel: offline/demo\n", "2:1", "Remove the line ---"],
    ["agents: { main: { sees: * } }\n", "1:25", 'Put the text in quotes: "*".'],
    ["agents:\n  - main\n", "2:3", "Write keys instead of dashes, for example main: {}."],
    ["server: { port: '4270' }\n", "1:17", "Write 4270, without quotes."],
    ["owners: telegram:7\n", "1:9", 'Write ["telegram:7"].'],
    ['bindings: [{ agent: main, matrix: "1" }]\n', "1:27", "write match: { platform: matrix"],
    ["model:\n", "1:7", "Write a text or a list, or remove the key."],
    ["channels: { telegram: }\n", "1:23", "Write a map, or remove the key."],
  ])("%j is told what to write instead", (yaml, place, fix) => {
    const [problem, ...more] = inspectSettings({ home }, {}, { text: yaml }).problems;
    expect(more).toEqual([]);
    expect(`${problem?.line}:${problem?.column}`).toBe(place);
    expect(problem?.fix).toContain(fix);
    expect(problem?.message).not.toContain("YAML.");
  });

  test("several problems are counted, and all are in the details", () => {
    expect(refusal("modle: a/b\nstor: sqlite\n")).toMatch(/^guildhall\.yaml:1:1: modle.*\(and 1 more\)$/);
  });

  test("several agents need a default among them", () => {
    expect(refusal("agents:\n  a: {}\n  b: {}\n")).toMatch(/^guildhall\.yaml:2:3: agents: expected one agent with `default: true`/);
    expect(load("agents:\n  a: {default: true}\n  b:\n").config.agents).toMatchObject({ a: { default: true }, b: { state: "active" } });
    expect(refusal("agents: {}\n")).toMatch(/at least one agent/);
  });
});

describe("names from the environment", () => {
  test("are replaced, from the process first and then from .env", () => {
    writeFileSync(join(home, ".env"), "FIRST=file\nSECOND='two words'\n");
    expect(load("personality: ${FIRST} and ${SECOND}\n", { FIRST: "process" }).config.personality).toBe("process and two words");
  });

  test("that are not set are an error with their own line", () => {
    expect(refusal("personality: |\n  One line,\n  then ${MISSING} in the next.\n")).toBe(
      "guildhall.yaml:3:8: personality: ${MISSING} is not set in the environment or in .env",
    );
  });
});

describe("hostile files are refused within bounds", () => {
  test("a file over 4 MiB", () => {
    expect(refusal(`personality: ${"x".repeat(4 * 1024 * 1024)}\n`)).toMatch(/larger than 4096 KiB/);
  });

  test("more than 100 aliases", () => {
    expect(refusal(`a: &a 1\nb: [${"*a, ".repeat(101)}]\n`)).toMatch(/more than 100 aliases/);
  });

  test("aliases that multiply", () => {
    const layers = Array.from({ length: 9 }, (_, index) => `l${index + 1}: &l${index + 1} [${`*l${index}, `.repeat(9)}]`);
    expect(refusal(`l0: &l0 [x]\n${layers.join("\n")}\n`)).toMatch(/more than 200000 values/);
  });

  test("an alias inside its own anchor", () => {
    expect(refusal("a: &a [*a]\n")).toMatch(/nested too deeply/);
  });

  test("nesting beyond the stack", () => {
    expect(refusal("[".repeat(20_000))).toMatch(/not valid YAML|nested too deeply/);
  });

  test("nesting that the parser would bear", () => {
    expect(refusal(`a: ${"[".repeat(200)}${"]".repeat(200)}\n`)).toMatch(/nested too deeply/);
  });

  test("keys that reach an object's prototype", () => {
    expect(refusal("agents:\n  __proto__: {default: true}\n")).toMatch(/^guildhall\.yaml:2:3: agents: `__proto__` cannot be a key/);
    expect(refusal("agents:\n  constructor: {}\n")).toMatch(/^guildhall\.yaml:2:3: agents: `constructor` cannot be a key/);
  });
});

test("an agent without a sandbox is warned about, where it is written", () => {
  const config = "sandbox: auto\nagents:\n  main: { sandbox: none }\n  other: { sandbox: { kind: none, network: full } }\n";
  writeFileSync(join(home, "guildhall.yaml"), config);
  const warned = loadSettings({ home }, {}).warnings.filter(({ code }) => code === "config.no_sandbox");
  expect(warned.map(({ line }) => line)).toEqual([3, 4]);
});
