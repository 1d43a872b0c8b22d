import type { Config } from "../../contract/config.ts";
import type { Settings } from "../../settings/load-settings.ts";
import type { RoutingInput } from "./router.ts";

/** What the router needs of the settings. */
export function routingOf(settings: Pick<Settings, "config" | "originOf">): RoutingInput {
  return routingOfConfig(settings.config, (index) => settings.originOf(["bindings", index])?.line ?? null);
}

/** For a config that stands in no file. */
export function routingOfConfig(
  { agents, unrouted, bindings }: Pick<Config, "agents" | "unrouted" | "bindings">,
  lineOf: RoutingInput["lineOf"] = () => null,
): RoutingInput {
  return { agents, unrouted, bindings, lineOf };
}
