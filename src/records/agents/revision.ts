import type { Config } from "../../contract/config.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { type RouteDecision, route } from "../../deciders/routing/route.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { type Agent, agentsOf } from "./agent.ts";

export interface Router {
  route(address: Address): RouteDecision;
  explain(address: Address): RouteDecision;
}

/** Everything that follows from one text of the config. Never changes; what began with it may end with it. */
export interface Revision {
  /** 0 until it is stored. */
  readonly number: number;
  readonly settings: Settings;
  readonly router: Router;
  readonly agents: ReadonlyMap<string, Agent>;
}

export function revisionOf(settings: Settings, number: number): Revision {
  return { number, settings, router: routerOf(settings.config), agents: agentsOf(settings) };
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

function routerOf(config: Config): Router {
  return { route: (address) => route(config, address), explain: (address) => route(config, address) };
}
