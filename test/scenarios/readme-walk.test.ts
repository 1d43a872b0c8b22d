import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Home } from "./guildhall.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const section = readme.slice(readme.indexOf("## Several agents"), readme.indexOf("## Five coding agents"));
const [config, workflow] = [...section.matchAll(/```yaml\n([\s\S]+?)```/g)].map(([, text]) => text as string);

/** `$ guildhall …` and the lines that follow it, up to the next command or the end of the block. */
const commands = [...section.matchAll(/^```\n(\$ guildhall[\s\S]+?)^```$/gm)]
  .flatMap(([, block]) => (block as string).split(/^\$ /m).slice(1))
  .map((one) => {
    const [line = "", ...output] = one.trimEnd().split("\n");
    return { line, args: line.split(" ").slice(1), output };
  });

/** How many attempts there are grows with the product; no two machines are as quick. */
const comparable = (line: string): string =>
  line
    .trimEnd()
    .replace(/\d+ attempts/, "some attempts")
    .replace(/\d+ (?:ms|s), \d+ tokens/, "some time and tokens");

const home = new Home(config);
mkdirSync(join(home.path, "workflows"));
writeFileSync(join(home.path, "workflows", "release-notes.yaml"), workflow ?? "");
afterAll(() => home.remove());

test("the README shows commands to run", () => {
  expect(commands.map(({ args }) => args.slice(0, 2).join(" "))).toEqual([
    "route explain",
    "can family",
    "doctor --isolation",
    "workflow check",
    "workflow run",
  ]);
});

test.each(commands)(
  "$line answers what the README shows",
  async ({ args, output }) => {
    const { code, stdout, stderr } = await home.run(args);
    if (args[0] === "workflow") expect(code, stderr).toBe(0);
    const said = `${stdout}\n${stderr}`.split("\n").map(comparable);
    for (const line of output.filter((one) => one !== "…")) expect(said, stderr).toContain(comparable(line));
  },
  120_000,
);
