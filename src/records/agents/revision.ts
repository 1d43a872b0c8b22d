import type { Config } from "../../contract/config.ts";
import { Router } from "../../deciders/routing/router.ts";
import { routingOf } from "../../deciders/routing/routing-of.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { type Agent, agentsOf } from "./agent.ts";

/** Everything that follows from one text of the config. Never changes; what began with it may end with it. */
export interface Revision {
  /** 0 until it is stored. */
  readonly number: number;
  readonly settings: Settings;
  readonly router: Router;
  readonly agents: ReadonlyMap<string, Agent>;
}

export function revisionOf(settings: Settings, number: number): Revision {
  return { number, settings, router: new Router(routingOf(settings)), agents: agentsOf(settings) };
}

/** For a program that hands in its config: nothing of it stands in a file. */
export function revisionWithoutFile(config: Config, home = ""): Revision {
  return revisionOf(
    {
      home,
      configFile: null,
      configText: "",
      configHash: "",
      config,
      quarantined: new Map(),
      warnings: [],
      originOf: () => null,
      storeLocation: "",
    },
    0,
  );
}
