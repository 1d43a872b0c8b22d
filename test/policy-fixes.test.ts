import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { can } from "../src/deciders/policy/can.ts";
import { Policy } from "../src/deciders/policy/policy.ts";
import { loadSettings } from "../src/settings/load-settings.ts";
import { SEED } from "./models/seed.ts";
import { anyConfig, anyName, WORLD } from "./policy-oracle.ts";

const home = mkdtempSync(join(tmpdir(), "guildhall-fixes-"));
const file = join(home, "guildhall.yaml");
afterAll(() => rmSync(home, { recursive: true, force: true }));

type Written = Record<string, unknown>;

function policyOf(config: Written, collectionStyle: "flow" | "block"): Policy {
  writeFileSync(file, stringify(config, { collectionStyle }));
  return new Policy(loadSettings({ home }, {}));
}

/** Does to a config what each part of a fix tells a person to do, and nothing else. */
function follow(config: Written, fix: string): void {
  for (const part of fix.split("; and ")) {
    const [, words, line] = /^(.*?)(?:, guildhall\.yaml:(\d+))?(?:, or name there .*| \(for every .*)?$/.exec(part) as RegExpExecArray;
    const [, verb, what, , path] = /^(remove|add) (.+) (from|to) (\S+)$/.exec(words as string) ?? [];
    const [, place, value] = /^write (\S+): (\{.*\})$/.exec(words as string) ?? [];
    const [, resting] = /^guildhall agents resume (\S+)$/.exec(words as string) ?? [];
    const { holder, key } = reached(config, path ?? place ?? `agents.${resting}.state`);
    const target = holder[key];
    if (resting !== undefined) holder[key] = "active";
    else if (place !== undefined) {
      expect(typeof target, `${part} would overwrite ${JSON.stringify(target)}`).toBe("string");
      holder[key] = parse(value as string);
    } else if (what?.startsWith("also_allow: ")) Object.assign(target as Written, parse(what));
    else if (verb === "add") (target as string[]).push(what as string);
    else {
      expect(target, part).toContain(what);
      expect(readFileSync(file, "utf8").split("\n")[Number(line) - 1], part).toContain(what);
      (target as string[]).splice((target as string[]).indexOf(what as string), 1);
    }
  }
}

function reached(config: Written, path: string): { holder: Written; key: string } {
  const keys = path.split(".");
  const key = keys.pop() as string;
  return { holder: keys.reduce((inner, name) => inner[name] as Written, config), key };
}

test(`seed ${SEED}: whoever does what a refusal says, and no more, may make the call`, () => {
  let followed = 0;
  fc.assert(
    fc.property(anyConfig, anyName, fc.constantFrom(...WORLD), fc.constantFrom("flow", "block"), (written, agent, tool, style) => {
      const config = structuredClone(written) as Written;
      // Broken sections are the settings' to explain, and servers cannot be had by rules.
      fc.pre(agent in written.agents && !JSON.stringify(config).includes("nothing_like_this") && !tool.startsWith("mcp__"));
      for (const each of Object.values(config.agents as Record<string, Written>)) delete each.subagents;
      const before = can(policyOf(config, style), agent, tool);
      if (before.verdict !== "deny") return;
      followed++;
      follow(config, before.fix ?? "");
      expect(can(policyOf(config, style), agent, tool), before.fix ?? "no fix").not.toMatchObject({ verdict: "deny" });
    }),
    { seed: SEED, numRuns: 150 },
  );
  expect(followed).toBeGreaterThan(25);
});
