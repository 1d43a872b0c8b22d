import { defaultAgentOf } from "../../contract/config.ts";
import type { ConfigProblem } from "../../settings/config-problem.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { bindingProblems } from "./binding-problems.ts";
import { routingOf } from "./routing-of.ts";

/** What is wrong with the bindings of a config that can be read, and where: for `config check`. */
export function routingProblems(settings: Pick<Settings, "config" | "configFile" | "quarantined" | "originOf">): ConfigProblem[] {
  const { config, configFile, quarantined } = settings;
  if (configFile === null) return [];
  const stateOf = (agent: string) => (quarantined.has(agent) ? "quarantined" : config.agents[agent]?.state);
  return bindingProblems(routingOf(settings), stateOf).map(({ severity, code, index, message, fix }) => {
    const path = index === null ? ["agents", defaultAgentOf(config.agents) ?? ""].filter((part) => part !== "") : ["bindings", index];
    const { line, column } = settings.originOf(path) ?? { line: 1, column: 1 };
    return { severity, code, file: configFile, line, column, path: path.join("."), message, fix };
  });
}
