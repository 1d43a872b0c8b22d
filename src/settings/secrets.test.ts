// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { z } from "zod";
import { configSchema } from "../contract/config.ts";
import { secret } from "../contract/secret.ts";
import { redactor } from "../kernel/redact.ts";
import { loadSettings, type Settings } from "./load-settings.ts";
import { SECRET_POSITIONS } from "./secret-positions.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-secrets-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function load(yaml: string, environment: Record<string, string> = {}): Settings {
  writeFileSync(join(home, "guildhall.yaml"), yaml);
  return loadSettings({ home }, environment);
}

const TWO = `
model: offline/\${MODEL}
agents:
  main: { env: { TOKEN: \${MAIN}, BOTH: "Bearer \${SHARED}" } }
  coder: { env: { TOKEN: \${CODER} } }
  broken: { env: { TOKEN: \${BROKEN} }, modle: x }
providers: { local: { api_key: \${KEY} } }
`;
const VALUES = {
  MODEL: "demo",
  MAIN: "value-main",
  CODER: "value-coder",
  SHARED: "value-shared",
  BROKEN: "value-broken",
  KEY: "value-key",
};

test("an agent is given its own variables, and nobody else's", () => {
  const { secrets } = load(TWO, VALUES);
  expect(secrets.of("main")).toEqual({ TOKEN: "value-main", BOTH: "Bearer value-shared" });
  expect(secrets.of("coder")).toEqual({ TOKEN: "value-coder" });
  for (const id of ["broken", "nobody", "constructor", "__proto__"]) expect(secrets.of(id)).toEqual({});
});

test("what stands at the place of a secret is one, also in a broken section; what stands elsewhere is none", () => {
  const names = load(TWO, VALUES)
    .secrets.values()
    .map(([name, value]) => `${name}=${value}`);
  expect(names.sort()).toEqual(["BROKEN=value-broken", "CODER=value-coder", "KEY=value-key", "MAIN=value-main", "SHARED=value-shared"]);
});

test("a secret is found by what stands for it in the file too, however it is spelt there", () => {
  const yaml = `agents:
  main:
    env:
      FOLDED: >
        one-two-three
        four-five-six
      QUOTED: 'it''s-a-secret'
      ESCAPED: "sec\\u0072et-value"
      DIGITS: 12345678901234567890123
      TWICE: { first-of-two: x-first-x }
    env: { OTHER: second-of-two }
  bad: { envs: { API_TOKEN: listed-misspelt }, env: listed-as-text, mcp: { a: { command: x, env: [KEY=listed-secret] } } }
channels: { telegram: { token: 00123456789 } }
`;
  const settings = load(yaml);
  const shown = redactor(settings.secrets.values())(settings.configText);
  for (const secret of ["two-three", "five-six", "-a-secret", "et-value", "3456789", "x-first-x", "second-of", "listed-"])
    expect(shown).not.toContain(secret);
  expect(settings.config.channels.telegram?.token?.reveal()).toBe("00123456789");
  expect(shown.match(/env:/g)).toHaveLength(4);
});

test("what is called a secret is one wherever it is put, and an address keeps its password to itself", () => {
  const { secrets } = load(
    "agents: { main: { mcp: { a: { command: x, args: [--key, '${FILES_API_KEY}', '${AUTHOR}'] }, b: { url: 'http://u:pass-word@h/x' } } } }\n" +
      "store: postgres://u:p@ss/wor:d@h/db?sslpassword=in-query\n",
    { FILES_API_KEY: "key-of-files", AUTHOR: "a-good-author" },
  );
  expect(
    secrets
      .values()
      .map(([, value]) => value)
      .sort(),
  ).toEqual(["in-query", "key-of-files", "p@ss/wor:d", "pass-word"]);
});

test("a password that is the user's name, as on many a desk, is no secret: the word stays in everybody's sentences", () => {
  expect(load("store: postgres://guildhall:guildhall@localhost/db\n").secrets.values()).toEqual([]);
  expect(load("store: postgres://app:postgres@localhost/db\n").secrets.values()).toEqual([]);
});

test("an ordinary word is no secret, unless it is called one", () => {
  const { secrets } = load("agents: { main: { env: { MODE: production, TOKEN: production2, DB_PASSWORD: sunshine } } }\n");
  expect(
    secrets
      .values()
      .map(([name]) => name)
      .sort(),
  ).toEqual(["DB_PASSWORD", "TOKEN"]);
});

test("the usual keys of providers and the password of the store are secrets too", () => {
  const { secrets } = load("store: postgres://user:p%40ssword@host/db\n", { OPENAI_API_KEY: "sk-usual" });
  expect(secrets.values()).toEqual(
    expect.arrayContaining([
      ["OPENAI_API_KEY", "sk-usual"],
      ["store", "p%40ssword"],
      ["store", "p@ssword"],
    ]),
  );
});

test("what everybody calls something by is no secret, wherever it is repeated", () => {
  const { secrets } = load("agents: { researcher: { env: { WHO: researcher, TOKEN: not-a-name } } }\n");
  expect(secrets.values()).toEqual([["TOKEN", "not-a-name"]]);
});

test(".env may begin with a mark and end its lines in CR LF", () => {
  writeFileSync(join(home, ".env"), "\uFEFFFIRST=one\r\nexport SECOND='two words'\r\n", { mode: 0o600 });
  expect(load("agents: { main: { env: { A: ${FIRST}, B: ${SECOND} } } }\n").secrets.of("main")).toEqual({ A: "one", B: "two words" });
});

test("secrets do not print", () => {
  const settings = load(TWO, VALUES);
  for (const printed of [JSON.stringify(settings), inspect(settings, { depth: 20 }), String(settings.secrets)])
    expect(printed).not.toMatch(/value-(main|coder|shared|broken|key)/);
});

test("a secret in the file itself is a warning that says what to write; one in .env that others can read is another", () => {
  writeFileSync(join(home, ".env"), "A=1\n");
  chmodSync(join(home, ".env"), 0o640);
  const { warnings } = load(
    "channels: { telegram: { accounts: { work: { token: literal-token } } } }\nagents: { main: { mcp: { a: { url: http://h, headers: { accept: text/html, x-api-key: literal } } } } }\n",
  );
  expect(warnings.map(({ code, path }) => `${code} ${path}`)).toEqual([
    "config.literal_secret channels.telegram.accounts.work.token",
    "config.literal_secret agents.main.mcp.a.headers.x-api-key",
    "config.readable_secrets ",
  ]);
  expect(warnings[0]?.fix).toBe("Write ${TELEGRAM_WORK_TOKEN} and put TELEGRAM_WORK_TOKEN=… into .env in the home.");
  expect(warnings[2]?.fix).toMatch(/^Run: chmod 600 /);
});

test("the list of places is the schema's", () => {
  const found: string[] = [];
  const walk = (schema: z.core.$ZodType, path: readonly string[]): void => {
    if (schema === secret) {
      found.push(path.join("."));
      return;
    }
    const def = schema._zod.def as unknown as Record<string, unknown>;
    for (const inner of [def.innerType, def.in, ...((def.options as unknown[]) ?? [])]) if (inner) walk(inner as z.core.$ZodType, path);
    for (const [key, inner] of Object.entries((def.shape as object) ?? {})) walk(inner as z.core.$ZodType, [...path, key]);
    for (const inner of [def.valueType, def.element]) if (inner) walk(inner as z.core.$ZodType, [...path, "*"]);
  };
  walk(configSchema, []);
  expect(found.sort()).toEqual([...SECRET_POSITIONS].sort());
});

test("a key in .env counts and is hidden, also where the environment has the name without a value", () => {
  writeFileSync(join(home, ".env"), "OPENAI_API_KEY=sk-in-the-file\n", { mode: 0o600 });
  const { secrets, modelKeys } = load("agents: { main: {} }\n", { OPENAI_API_KEY: "" });
  expect(modelKeys.keys.openai?.reveal()).toBe("sk-in-the-file");
  expect(secrets.values()).toContainEqual(["OPENAI_API_KEY", "sk-in-the-file"]);
  expect(JSON.stringify(modelKeys)).not.toContain("sk-in-the-file");
});
