import type { Config } from "../../contract/config.ts";
import { Policy } from "../../deciders/policy/policy.ts";
import { Router } from "../../deciders/routing/router.ts";
import { routingOf } from "../../deciders/routing/routing-of.ts";
import { SessionKeys } from "../../deciders/routing/session-key.ts";
import { type Settings, settingsWithoutFile } from "../../settings/load-settings.ts";
import { type Agent, agentsOf } from "./agent.ts";

/** Everything that follows from one text of the config. Never changes; what began with it may end with it. */
export interface Revision {
  /** 0 until it is stored. */
  readonly number: number;
  readonly settings: Settings;
  readonly router: Router;
  readonly sessionKeys: SessionKeys;
  readonly policy: Policy;
  readonly agents: ReadonlyMap<string, Agent>;
}

/** `tools`: names of those that the program around us brings. */
export function revisionOf(settings: Settings, number: number, tools: Iterable<string> = []): Revision {
  const policy = new Policy(settings, tools);
  const sessionKeys = new SessionKeys(settings.config);
  return { number, settings, router: new Router(routingOf(settings)), sessionKeys, policy, agents: agentsOf(settings, policy) };
}

/** For a program that hands in its config: nothing of it stands in a file. */
export function revisionWithoutFile(config: Config, home = ""): Revision {
  return revisionOf(settingsWithoutFile(config, home), 0);
}
