// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { loadSettings, loadSettingsAside, type Settings } from "../../src/settings/load-settings.ts";

const home = mkdtempSync(join(tmpdir(), "guildhall-large-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const agent = (index: number): string =>
  `  agent-${index}: { personality: You are number ${index}., tools: coding, env: { KEY: \${KEY} } }\n`;
const large = `agents:\n  main: { default: true }\n${Array.from({ length: 600 }, (_, index) => agent(index)).join("")}`;

function write(text: string): void {
  expect(text.length).toBeGreaterThan(32 * 1024);
  writeFileSync(join(home, "guildhall.yaml"), text);
}

const told = ({ config, quarantined, warnings, configHash, originOf, secrets }: Settings) => ({
  agents: Object.keys(config.agents),
  quarantined: [...quarantined],
  warnings,
  configHash,
  origin: originOf(["agents", "agent-599", "tools"]),
  key: Object.entries(secrets.of("agent-7")),
});

test("a large config that is parsed in a process of its own says the same as one parsed here", async () => {
  write(`${large}  odd: { tools: codng, env: { A: \${UNSET} } }\n  twice: { model: a/b, model: a/c }\n`);
  writeFileSync(join(home, ".env"), "KEY=from the file\n", { mode: 0o600 });
  const aside = told(await loadSettingsAside({ home }, { OTHER: "x" }));
  expect(aside).toEqual(told(loadSettings({ home }, { OTHER: "x" })));
  expect(aside.quarantined.map(([id]) => id)).toEqual(["odd", "twice"]);
  expect(aside.origin).toMatchObject({ line: 602 });
  expect(told(await loadSettingsAside({ home }, { KEY: "from the environment" })).key).not.toEqual(aside.key);
});

test.each([
  ["that is no YAML", `${large}\tbroken: [`],
  ["with an unknown key", `${large}agnets: {}\n`],
])("a large config %s is refused with the same words", async (_what, text) => {
  write(text);
  const message = (() => {
    try {
      loadSettings({ home }, { KEY: "x" });
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  })();
  expect(message).toMatch(/guildhall\.yaml:603:/);
  await expect(loadSettingsAside({ home }, { KEY: "x" })).rejects.toMatchObject({ code: "config.invalid", message });
});
