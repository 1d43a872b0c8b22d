import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = new URL("..", import.meta.url).pathname;
const numbered = (letter: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
const REQUIRED = [
  ...numbered("V", 8),
  ...numbered("L", 6),
  ...numbered("M", 5),
  ...numbered("A", 5),
  "E1",
  ...numbered("W", 6),
  "S2",
  "P3",
];

interface NamedTest {
  readonly file: string;
  readonly name: string;
}

const rows = new Map<string, NamedTest[]>();
for (const [, id, shownBy] of readFileSync(join(root, "docs/invariants.md"), "utf8").matchAll(/^\| ([A-Z]\d+) \| [^|]+ \| (.+) \|$/gm))
  rows.set(
    id as string,
    (shownBy as string).split("<br>").map((part) => {
      const [, file = part, name = ""] = /^`([^`]+)` "(.+)"$/.exec(part) ?? [];
      return { file, name };
    }),
  );

const textOf = (file: string): string => (existsSync(join(root, file)) ? readFileSync(join(root, file), "utf8") : "");
const lineOf = ({ file, name }: NamedTest): string | undefined =>
  textOf(file)
    .split("\n")
    .find((line) => line.includes(`"${name}"`));

/** Beneath a list of both databases, and not skipped on one of them. */
function runsOnBoth(named: NamedTest): boolean {
  const text = textOf(named.file);
  const both =
    text.includes(".each(PLACES)") || text.includes('.each(["SQLite", "PostgreSQL"])') || /\["sqlite",[\s\S]+\["postgres",/.test(text);
  return both && lineOf(named)?.includes("skipIf") === false;
}

test("every invariant of shared memory, claims, mail, agreement and requests is in the table", () => {
  for (const id of REQUIRED) expect([...rows.keys()]).toContain(id);
});

/** About files or the source alone. */
const WITHOUT_DATABASE = ["P3", "P4"];

test.each([...rows])("the tests that show %s are there, and one of them runs on both databases", (id, tests) => {
  for (const named of tests) expect(lineOf(named), `${named.file} has no test "${named.name}"`).toBeDefined();
  if (!WITHOUT_DATABASE.includes(id)) expect(tests.some(runsOnBoth), JSON.stringify(tests)).toBe(true);
});
