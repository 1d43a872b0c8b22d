// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Validator } from "@cfworker/json-schema";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { checkConfig, configSchemaAsJson } from "../src/daemon/local-config.ts";
import { explainKey } from "../src/daemon/local-explain.ts";
import { loadSettings } from "../src/settings/load-settings.ts";
import { WHOLE_CONFIG, WHOLE_ENVIRONMENT } from "./examples/whole-config.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-config-"));
  mkdirSync(join(home, "team-docs"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(yaml: string): void {
  writeFileSync(join(home, "guildhall.yaml"), yaml);
  const values = Object.entries(WHOLE_ENVIRONMENT).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(home, ".env"), values.join(""), { mode: 0o600 });
}

test("the whole config loads without a problem", () => {
  write(WHOLE_CONFIG);
  const settings = loadSettings({ home }, {});
  expect([...settings.quarantined]).toEqual([]);
  expect(settings.warnings).toEqual([]);
  expect(settings.config.providers.local?.api_key?.reveal()).toBe("local-key-of-a-provider");
  expect(settings.config.agents.coder?.env.API_TOKEN?.reveal()).toBe("coder-token-of-an-agent");
  expect(settings.originOf(["providers", "local", "api_key"])).toEqual({ line: 17, column: 82 });
});

describe("config check", () => {
  test("finds nothing wrong in the whole config", () => {
    write(WHOLE_CONFIG);
    const { ok, problems } = checkConfig({ home }, undefined);
    expect(ok).toBe(true);
    expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  test("names every model that cannot be used, with its line: an error where nothing else would answer", () => {
    write(
      "model: nobody/knows\nagents:\n  main: {}\n  coder: { model: openai/gpt-5.4 }\n  safe: { model: [openai/gpt-5.4, offline/demo] }\n",
    );
    const { ok, problems } = checkConfig({ home }, undefined);
    expect(ok).toBe(false);
    expect(problems).toMatchObject([
      { severity: "error", code: "config.unknown_model", path: "model", line: 1, message: expect.stringContaining('no provider "nobody"') },
      { severity: "error", code: "config.no_key", path: "agents.coder.model", line: 4, fix: expect.stringContaining("OPENAI_API_KEY") },
      { severity: "warning", code: "config.no_key", path: "agents.safe.model.0", line: 5 },
    ]);
  });

  test("names every problem with its line, and shows no secret", () => {
    write("agents:\n  main: { modle: x, env: { A: a-literal-secret } }\nchannels:\n  telegram: { token: 'another-literal' }\n");
    const { ok, problems } = checkConfig({ home }, undefined);
    expect(ok).toBe(false);
    expect(problems[0]).toMatchObject({ severity: "error", code: "config.unknown_key", path: "agents.main.modle", line: 2, column: 11 });
    expect(problems.filter(({ code }) => code === "config.literal_secret").map(({ path }) => path)).toEqual([
      "agents.main.env.A",
      "channels.telegram.token",
    ]);
    expect(JSON.stringify(problems)).not.toMatch(/a-literal-secret|another-literal/);
  });

  test.each([
    ["a text after a quote", 'agents:\n  main:\n    env:\n      FOO: "lit-secret one" bad\n'],
    ["a map on one line", "agents:\n  main: { env: { FOO: lit-secret, : }\n"],
    ["a key of several lines", "agents:\n  main:\n    env:\n      PEM: |\n        lit-secret\n      BAD: 'x\n"],
    ["an open quote", 'channels: { telegram: { token: "lit-secret one, }\n'],
    ["a password", "store: 'postgres://u:lit-secret/x@h/db' x\n"],
    ["a text in place of a map", "agents: { main: { env: lit-secret } }\nchannels: { telegram: lit-secret2 }\n"],
    ["a list in place of a map", "agents: { main: { env: [A=lit-secret] } }\n"],
    ["digits", "channels: { telegram: { token: 1234567890123456789012, x: 1 } }\n"],
    ["an address", "providers: { local: { x: 1, base_url: 'http://u:lit-secret@h' } }\n"],
  ])("shows no secret of a file that is wrong: %s", (_, yaml) => {
    write(yaml);
    const { ok, problems } = checkConfig({ home }, undefined);
    expect(ok).toBe(false);
    expect(JSON.stringify(problems)).not.toMatch(/lit-secret|56789/);
  });

  test("shows the line of a file that cannot be read where nothing on it can be a secret", () => {
    write("agents:\n  main:\n    personality: one: two\n");
    expect(checkConfig({ home }, undefined).problems[0]?.source).toEqual({ text: "    personality: one: two", caret: 17 });
    write("agents: { main: { env: { A_TOKEN: a-literal-secret }, modle: x } }\n");
    const source = checkConfig({ home }, undefined).problems[0]?.source;
    expect(source?.text.slice(source.caret)).toBe("modle: x } }");
  });

  test("takes another file, and warns of an .env that others can read", () => {
    write("agents: {}\n");
    chmodSync(join(home, ".env"), 0o644);
    writeFileSync(join(home, "other.yaml"), "server: { port: 1 }\n");
    const { ok, file, problems } = checkConfig({ home }, join(home, "other.yaml"));
    expect({ ok, file }).toEqual({ ok: true, file: join(home, "other.yaml") });
    expect(problems.map(({ code }) => code)).toEqual(["config.readable_secrets"]);
  });

  test("finds bindings that can never win, bindings to who is not there to answer, and rules that do nothing", () => {
    write(
      `agents:
  main: { tools: { profile: messaging, deny: [terminal] } }
  away: { state: paused }
bindings:
  - { agent: main, telegram: 1 }
  - { agent: away, telegram: 1 }
  - { agent: away, telegram: 2 }
`,
    );
    const { ok, problems } = checkConfig({ home }, undefined);
    expect(ok).toBe(true);
    expect(problems.map(({ code, line, path }) => `${line} ${path} ${code}`)).toEqual(
      expect.arrayContaining(["2 agents.main.tools.deny.0 policy.idle_deny", "6 bindings.1 binding.duplicate"]),
    );
    expect(problems.filter(({ line }) => line === 7).map(({ message }) => message)).toEqual([expect.stringMatching(/paused/)]);
  });

  test("is content with no file at all", () => {
    expect(checkConfig({ home }, undefined)).toMatchObject({ ok: true, exists: false, problems: [] });
  });
});

describe("config explain", () => {
  test.each([
    ["agents.coder.model", "anthropic/claude-sonnet-4", "written"],
    ["agents.ops.model", "anthropic/claude-opus-4.6", "inherited"],
    ["agents.researcher.tools.deny", ["terminal"], "written"],
    ["agents.ops.tools", "full", "inherited"],
    ["agents.ops.budget.usd_per_day", 20, "inherited"],
    ["agents.coder.budget.usd_per_day", 5, "written"],
    ["agents.researcher.tools.ask", [], "default"],
    ["agents.coder.subagents.model", "google/gemini-3-flash-preview", "inherited"],
    ["agents.coder.state", "active", "default"],
    ["agents.coder.env.API_TOKEN", "[secret]", "written"],
    ["agents.coder", expect.objectContaining({ env: { API_TOKEN: "[secret]" } }), "written"],
    ["bindings[0].topic", "42", "written"],
    ["server.port", 4270, "written"],
    ["pools.house.keys.facts.max_bytes", 65536, "written"],
  ])("%s", (key, value, from) => {
    write(WHOLE_CONFIG);
    expect(explainKey({ home }, key)).toMatchObject({ key, value, from });
  });

  test("shows no password of an address, and no secret that stands among other things", () => {
    write(
      "store: postgres://u:p:w/1@h/db?password=pw2\nagents: { main: { mcp: { a: { command: x, args: ['--key=${CODER_TOKEN}'] } } } }\n",
    );
    expect(explainKey({ home }, "store").value).toBe("postgres://u:[secret]@h/db?password=[secret]");
    expect(explainKey({ home }, "agents.main.mcp.a.args").value).toEqual(["--key=[secret CODER_TOKEN]"]);
  });

  test("says where it is written, what it is inherited from, and who reads it", () => {
    write(WHOLE_CONFIG);
    expect(explainKey({ home }, "agents.coder.model")).toMatchObject({ file: join(home, "guildhall.yaml"), line: 22, column: 12 });
    expect(explainKey({ home }, "agents.ops.model").because).toBe("inherited from model (line 2)");
    expect(explainKey({ home }, "providers.local.api_key")).toMatchObject({ readBy: ["abilities/models"] });
    expect(explainKey({ home }, "channels.telegram.token")).toMatchObject({ readBy: ["edges/channels"], value: "[secret]" });
    expect(explainKey({ home }, "server.host").readBy).toEqual(["daemon"]);
  });

  test("without a file, says what is so by default", () => {
    const value = (key: string): unknown => explainKey({ home }, key).value;
    expect([value("model"), value("agents.main.model"), value("dm_scope")]).toEqual(["offline/demo", "offline/demo", "per-channel-peer"]);
    expect(value("server.port")).toBe(4270);
  });

  test.each([
    ["agents.codr.model", /did you mean "agents\.coder"/],
    ["agents.coder.modle", /did you mean "agents\.coder\.model"/],
    ["srver", /did you mean "server"/],
    ["bindings.9.agent", /there is no key "bindings\.9"/],
    ["agents.__proto__", /there is no key/],
  ])("refuses what is no key: %s", (key, message) => {
    write(WHOLE_CONFIG);
    expect(() => explainKey({ home }, key)).toThrow(message);
  });
});

describe("config schema", () => {
  const validator = new Validator(configSchemaAsJson() as never, "2020-12");

  test("accepts the whole config", () => {
    // An editor reads names as text too, wherever a text may stand; inside a flow map they are quoted for it.
    const config = parse(WHOLE_CONFIG.replaceAll(/\$\{\w+\}/g, '"$&"'));
    expect(validator.validate(config)).toMatchObject({ valid: true });
    expect(validator.validate({})).toMatchObject({ valid: true });
  });

  test.each([
    [{ agnets: {} }],
    [{ agents: { main: { modle: "a/b" } } }],
    [{ agents: { Main: {} } }],
    [{ tools: "codng" }],
    [{ bindings: [{ agent: "main", telegrm: "1" }] }],
    [{ server: { port: 70_000 } }],
  ])("refuses %j", (config) => {
    expect(validator.validate(config).valid).toBe(false);
  });

  test("says a word about keys", () => {
    const { properties } = configSchemaAsJson() as { properties: Record<string, { description?: string }> };
    expect(properties.model?.description).toMatch(/<provider>\/<model>/);
    expect(JSON.stringify(properties.channels)).toMatch(/Accounts on a chat platform/);
  });
});
