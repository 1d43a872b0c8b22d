import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { Home } from "./guildhall.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const section = readme.slice(readme.indexOf("## Several agents"), readme.indexOf("## Five coding agents"));
const [, config] = /```yaml\n([\s\S]+?)```/.exec(section) ?? [];

/** `$ guildhall …` and the lines that follow it, up to the next command or the end of the block. */
const commands = [...section.matchAll(/^```\n(\$ guildhall[\s\S]+?)^```$/gm)]
  .flatMap(([, block]) => (block as string).split(/^\$ /m).slice(1))
  .map((one) => {
    const [line = "", ...output] = one.trimEnd().split("\n");
    return { line, args: line.split(" ").slice(1), output };
  });

/** How many attempts there are grows with the product. */
const comparable = (line: string): string => line.trimEnd().replace(/\d+ attempts/, "some attempts");

const home = new Home(config);
afterAll(() => home.remove());

test("the README shows commands to run", () => {
  expect(commands.map(({ args }) => args.slice(0, 2).join(" "))).toEqual(["route explain", "can family", "doctor --isolation"]);
});

test.each(commands)(
  "$line answers what the README shows",
  async ({ args, output }) => {
    const { stdout, stderr } = await home.run(args);
    const said = stdout.split("\n").map(comparable);
    for (const line of output.filter((one) => one !== "…")) expect(said, stderr).toContain(comparable(line));
  },
  120_000,
);
