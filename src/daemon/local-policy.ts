import type { CanAnswer } from "../contract/policy.ts";
import { can } from "../deciders/policy/can.ts";
import { Policy } from "../deciders/policy/policy.ts";
import type { Whereabouts } from "../settings/home.ts";
import { loadSettings } from "../settings/load-settings.ts";

/** By the config file as it stands, whether or not a daemon runs. */
export function canAt(where: Whereabouts, agent: string, tool: string, args: string | undefined): CanAnswer {
  return can(new Policy(loadSettings(where, process.env)), agent, tool, args);
}
