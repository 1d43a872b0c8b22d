import { homeOf, type Whereabouts } from "../../settings/home.ts";
import { a2aChecks } from "./a2a-checks.ts";
import { channelChecks } from "./channel-checks.ts";
import type { Check, Finding } from "./check.ts";
import { configChecks } from "./config-checks.ts";
import { folderChecks, homeChecks } from "./home-checks.ts";
import { nodeChecks } from "./node-checks.ts";
import { sandboxChecks } from "./sandbox-checks.ts";
import { scheduleChecks } from "./schedule-checks.ts";
import { jailCheck, portCheck, storeCheck, versionCheck } from "./system-checks.ts";

export interface Diagnosis {
  readonly willStart: boolean;
  readonly checks: readonly Check[];
}

/** Looks at everything a start depends on, and starts nothing. With `fix`, what is safe to put right is put right first. */
export async function diagnose(where: Whereabouts, fix: boolean): Promise<Diagnosis> {
  const repaired: Check[] = fix ? repairAll(await findings(where)) : [];
  const now = (await findings(where)).map(withoutRepair);
  const done = new Map(repaired.map(({ id, repaired: what }) => [id, what]));
  const checks = now.map((check) => ({ ...check, repaired: done.get(check.id) ?? null }));
  return { willStart: !checks.some(({ blocks }) => blocks), checks };
}

async function findings(where: Whereabouts): Promise<Finding[]> {
  const home = homeOf(where, process.env);
  const { settings, findings: config } = configChecks(where);
  const first = [versionCheck(), ...homeChecks(home), ...config];
  if (settings === null) return [...first, jailCheck()];
  return [
    ...first,
    await storeCheck(settings),
    ...(await nodeChecks(settings)),
    ...(await scheduleChecks(settings)),
    ...(await channelChecks(settings)),
    await portCheck(settings),
    jailCheck(),
    ...(await sandboxChecks(settings)),
    ...(await a2aChecks(settings)),
    ...folderChecks(home, Object.keys(settings.config.agents)),
  ];
}

function repairAll(all: readonly Finding[]): Check[] {
  return all.flatMap((finding) => {
    const { repair } = finding;
    if (!repair) return [];
    try {
      repair.run();
      return [{ ...withoutRepair(finding), repaired: repair.does }];
    } catch {
      // It is found again, with what to do about it by hand.
      return [];
    }
  });
}

function withoutRepair({ repair: _repair, ...check }: Finding): Check {
  return { ...check, repaired: null };
}
