// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Failure } from "../kernel/failure.ts";
import type { Environment } from "./home.ts";
import { loadSettings, type Settings } from "./load-settings.ts";

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
    ["agents:\n  main:\n    modle: a/b\n", 'guildhall.yaml:3:5: agents.main.modle: unknown key (did you mean "model"?)'],
    ["agnets: {}\n", 'guildhall.yaml:1:1: agnets: unknown key (did you mean "agents"?)'],
    ["unrouted: refus\n", 'guildhall.yaml:1:11: unrouted: expected default or refuse, found "refus" (did you mean "refuse"?)'],
    ["server:\n  port: many\n", 'guildhall.yaml:2:9: server.port: expected a number, found "many"'],
    ["server:\n  port: 70000\n", "guildhall.yaml:2:9: server.port: Too big: expected number to be <=65535"],
    ["agents: 7\n", "guildhall.yaml:1:9: agents: expected a map, found 7"],
    ["agents:\n  a b: {}\n", "guildhall.yaml:2:3: agents.a b: an agent's id is 1 to 64 letters, digits, _ and -"],
    ["model: gpt\n", "guildhall.yaml:1:8: model: expected <provider>/<model>, for example offline/demo"],
    ["store: mysql\n", "guildhall.yaml:1:8: store: expected sqlite or postgres://…"],
    ["- 1\n", "guildhall.yaml:1:1: expected a map, found a list"],
    ["a: 1\na: 2\n", "guildhall.yaml:2:1: not valid YAML: Map keys must be unique"],
    ["a: !!js/function x\n", "guildhall.yaml:1:4: not valid YAML: Unresolved tag: tag:yaml.org,2002:js/function"],
    ["a: *nowhere\n", "guildhall.yaml:1:4: a: there is no anchor &nowhere"],
  ])("%j", (yaml, message) => {
    expect(refusal(yaml)).toBe(message);
  });

  test("several problems are counted, and all are in the details", () => {
    expect(refusal("modle: a/b\nstor: sqlite\n")).toMatch(/^guildhall\.yaml:1:1: modle.*\(and 1 more\)$/);
  });

  test("several agents need a default among them, and only one", () => {
    expect(refusal("agents:\n  a: {}\n  b: {}\n")).toMatch(/^guildhall\.yaml:2:3: agents: expected one agent with `default: true`/);
    expect(refusal("agents:\n  a: {default: true}\n  b: {default: true}\n")).toMatch(/^guildhall\.yaml:3:16: agents\.b\.default: only one/);
    expect(load("agents:\n  a: {default: true}\n  b:\n").config.agents).toEqual({ a: { default: true }, b: {} });
    expect(refusal("agents: {}\n")).toMatch(/at least one agent/);
  });

  test("two agents may not share a folder where file names ignore case", () => {
    expect(refusal("agents:\n  main: {}\n  Main: {}\n")).toMatch(/^guildhall\.yaml:3:9: agents\.Main: .* upper and lower case/);
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
  test("a file over 1 MiB", () => {
    expect(refusal(`personality: ${"x".repeat(1024 * 1024)}\n`)).toMatch(/larger than 1024 KiB/);
  });

  test("more than 100 aliases", () => {
    expect(refusal(`a: &a 1\nb: [${"*a, ".repeat(101)}]\n`)).toMatch(/more than 100 aliases/);
  });

  test("aliases that multiply", () => {
    const layers = Array.from({ length: 9 }, (_, index) => `l${index + 1}: &l${index + 1} [${`*l${index}, `.repeat(9)}]`);
    expect(refusal(`l0: &l0 [x]\n${layers.join("\n")}\n`)).toMatch(/more than 20000 values/);
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
    expect(refusal("agents:\n  main: {}\nconstructor: 1\n")).toMatch(/constructor: unknown key/);
  });
});
