import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { loadSettings } from "../src/settings/load-settings.ts";
import { BUGS } from "./planted/bugs.ts";

const root = new URL("..", import.meta.url).pathname;
const read = (name: string): string => readFileSync(join(root, name), "utf8");
const readme = read("README.md");
const scripts = (JSON.parse(read("package.json")) as { scripts: Record<string, string> }).scripts;

test("CI runs exactly the README's test line", () => {
  const lines = [...readme.matchAll(/```sh\n(.+)\n```/g)].map(([, line]) => line);
  expect(lines).toEqual(["npm ci && npm start", "npm ci && npm test"]);
  expect(read(".ci/run").trimEnd().split("\n").at(-1)).toBe("npm ci && npm test");
});

test("every npm command that a document names exists", () => {
  for (const file of ["README.md", "CONTRIBUTING.md", "AGENTS.md", "bench/README.md"]) {
    for (const [, name] of read(file).matchAll(/npm run ([a-z:]+)/g)) expect(Object.keys(scripts), `${file}: ${name}`).toContain(name);
  }
});

test("the README's config is valid", () => {
  const [, yaml] = readme.match(/```yaml\n([\s\S]+?)```/) ?? [];
  const home = mkdtempSync(join(tmpdir(), "guildhall-readme-"));
  try {
    writeFileSync(join(home, "guildhall.yaml"), yaml as string);
    const { config } = loadSettings({ home }, {});
    expect(Object.keys(config.agents ?? {})).toEqual(["main", "coder", "family"]);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

test("every config in the guides to agents, models, channels and other houses loads without an error", () => {
  const guides = ["agents", "models", "a2a", "channels"].map((name) => read(`docs/${name}.md`)).join("");
  const blocks = [...guides.matchAll(/```yaml\n([\s\S]+?)```/g)].map(([, yaml]) => yaml as string);
  expect(blocks.length).toBeGreaterThan(3);
  const home = mkdtempSync(join(tmpdir(), "guildhall-guide-"));
  try {
    for (const text of blocks) {
      const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => [name, `the secret value of ${name}`]);
      const { quarantined, warnings } = loadSettings({ home }, Object.fromEntries(names), { text });
      expect({ quarantined: [...quarantined], warnings }, text).toEqual({ quarantined: [], warnings: [] });
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

test("the README counts the planted bugs right", () => {
  const [, counted] = /more than (\d+) bugs planted in a copy/.exec(readme) ?? [];
  expect(Math.floor((BUGS.length - 1) / 50) * 50).toBe(Number(counted));
});

test("every planted bug still fits the source", () => {
  for (const bug of BUGS) expect(read(bug.file).split(bug.from).length, bug.name).toBe(2);
});

test("links between documents lead somewhere", () => {
  const documents = [
    "README.md",
    "CONTRIBUTING.md",
    "AGENTS.md",
    ...readdirSync(join(root, "docs"))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `docs/${name}`),
  ];
  for (const file of documents) {
    for (const [, target] of read(file).matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
      expect(() => statSync(join(root, dirname(file), target as string)), `${file} → ${target}`).not.toThrow();
    }
  }
});
