import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Skills } from "./skills.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-skills-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function skill(folder: string, text: string): void {
  mkdirSync(join(home, folder), { recursive: true });
  writeFileSync(join(home, folder, "SKILL.md"), text);
}

test("an agent's own skills go before everybody's, and others' are not its", async () => {
  skill("skills/tea", "---\ndescription: everybody's tea\n---\nE");
  skill("skills/fire", "---\nname: fire\ndescription: >\n  How to\n  make fire\n---\nF");
  skill("agents/main/skills/tea", "---\nname: tea\ndescription: my tea\n---\nM");
  skill("agents/other/skills/gold", "---\nname: gold\ndescription: not for you\n---\nG");
  const skills = new Skills(home);
  expect(await skills.of("main")).toEqual([
    { name: "fire", description: "How to make fire" },
    { name: "tea", description: "my tea" },
  ]);
  expect(await skills.read("main", "tea")).toContain("M");
  expect(await skills.read("other", "tea")).toContain("E");
  await expect(skills.read("main", "gold")).rejects.toMatchObject({ code: "request.not_found" });
});

test("what does not say what it is for is no skill", async () => {
  for (const [index, text] of [
    "no head",
    "---\nname: x\n---\n",
    "---\ndescription: [1]\n---\n",
    "---\ndescription: 'open\n---\n",
    "---\na: &a [*a]\n---\n",
  ].entries())
    skill(`skills/s${index}`, text);
  skill("skills/Bad Name", "---\ndescription: x\n---\n");
  expect(await new Skills(home).of("main")).toEqual([]);
});

test("a skill that was changed is told anew, and one that was removed is gone", async () => {
  const skills = new Skills(home);
  skill("skills/tea", "---\ndescription: one\n---\n");
  expect(await skills.of("main")).toEqual([{ name: "tea", description: "one" }]);
  skill("skills/tea", "---\ndescription: another\n---\n");
  expect(await skills.of("main")).toEqual([{ name: "tea", description: "another" }]);
  rmSync(join(home, "skills"), { recursive: true });
  expect(await skills.of("main")).toEqual([]);
});

test("bounded: long descriptions, long files, many skills", async () => {
  skill("skills/long", `---\ndescription: ${"x".repeat(5_000)}\n---\n${"y".repeat(1_000_000)}`);
  for (let index = 0; index < 120; index++) skill(`skills/many${index}`, "---\ndescription: x\n---\n");
  const skills = new Skills(home);
  const found = await skills.of("main");
  expect(found).toHaveLength(100);
  expect(found.find(({ name }) => name === "long")?.description).toHaveLength(300);
  expect((await skills.read("main", "long")).length).toBeLessThanOrEqual(200_000);
});
