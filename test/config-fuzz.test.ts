// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { inspectSettings } from "../src/settings/load-settings.ts";
import { WHOLE_CONFIG, WHOLE_ENVIRONMENT } from "./examples/whole-config.ts";
import { SEED as seed } from "./models/seed.ts";

const home = mkdtempSync(join(tmpdir(), "guildhall-fuzz-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** What people write by mistake, and what others write on purpose. */
const SCRAPS = [
  "{",
  "}",
  "[",
  "]",
  ":",
  ",",
  "- ",
  "  ",
  "\n",
  "\t",
  "#",
  "'",
  '"',
  "&a",
  "*a",
  "!!x",
  "|",
  ">",
  "null",
  "true",
  "7",
  "1e999",
  "0x7",
  "-",
  "<<",
  "${X}",
  "$${X}",
  "${",
  "__proto__",
  "\u0000",
  "\ud800",
  "\u202e",
  "с",
  "?",
  "%",
  "@",
  "`",
  "---\n",
  "...\n",
];
const change = fc.record({
  at: fc.nat(WHOLE_CONFIG.length),
  cut: fc.nat(12),
  scrap: fc.oneof(fc.constantFrom(...SCRAPS), fc.string({ maxLength: 8 })),
});

function changed(changes: readonly { at: number; cut: number; scrap: string }[]): string {
  return changes.reduce((text, { at, cut, scrap }) => text.slice(0, at) + scrap + text.slice(at + cut), WHOLE_CONFIG);
}

function inspected(text: string): void {
  const { settings, problems } = inspectSettings({ home }, WHOLE_ENVIRONMENT, { text });
  expect(settings !== null || problems.some(({ severity }) => severity === "error")).toBe(true);
  const lines = text.split("\n").length;
  for (const { code, message, fix, line, column } of problems) {
    expect(code).toMatch(/^config\.[a-z_]+$/);
    expect(message).not.toMatch(/^$|undefined|\[object|Invalid input/);
    expect(fix, `${code}: ${message}`).not.toBe("");
    expect(line).toBeGreaterThanOrEqual(1);
    expect(line).toBeLessThanOrEqual(lines + 1);
    expect(column).toBeGreaterThanOrEqual(1);
    for (const secret of Object.values(WHOLE_ENVIRONMENT)) expect(message + fix).not.toContain(secret);
  }
  for (const id of settings?.quarantined.keys() ?? []) expect(settings?.config.agents[id]?.env ?? {}).toEqual({});
}

test("whatever is changed in a config, it loads or says what is wrong and where", () => {
  fc.assert(fc.property(fc.array(change, { minLength: 1, maxLength: 4 }).map(changed), inspected), { numRuns: 200, seed });
});

test("any text at all loads or is refused", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc.array(fc.constantFrom(...SCRAPS, "a", "agents", "main")).map((parts) => parts.join("")),
      ),
      inspected,
    ),
    { numRuns: 200, seed },
  );
});

test("any JSON value in the place of any key loads or is refused", () => {
  const keys = [
    "model",
    "tools",
    "agents",
    "bindings",
    "channels",
    "pools",
    "identities",
    "providers",
    "server",
    "owners",
    "subagent",
    "store",
    "budget",
  ];
  const value = fc.jsonValue({ maxDepth: 4 });
  const config = fc.dictionary(
    fc.constantFrom(...keys),
    fc.oneof(
      value,
      fc.dictionary(fc.constantFrom("main", "a", "A b"), value),
      fc.array(fc.dictionary(fc.constantFrom("agent", "telegram", "match", "topic"), value)),
    ),
    { maxKeys: 4 },
  );
  fc.assert(
    fc.property(config, (written) => inspected(JSON.stringify(written))),
    { numRuns: 200, seed },
  );
});
