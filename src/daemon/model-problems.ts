import { modelsOf } from "../abilities/models/configured-models.ts";
import type { Provider } from "../abilities/models/model-registry.ts";
import { asFailure, type Failure } from "../kernel/failure.ts";
import type { Models } from "../kernel/model.ts";
import type { ConfigPath, ConfigProblem } from "../settings/config-problem.ts";
import type { Settings } from "../settings/load-settings.ts";

/** A model that is named, and where; `others` might answer in its stead. */
interface Named {
  readonly path: ConfigPath;
  readonly name: string;
  readonly others: readonly string[];
}

/** Models that are named and cannot be used: their provider is unknown, or there is no key for it. `providers`: of the program around us. */
export function modelProblems(settings: Settings, providers: readonly Provider[] = []): ConfigProblem[] {
  const { configFile, originOf } = settings;
  if (configFile === null) return [];
  const models = modelsOf(settings, { providers });
  return namedModels(settings).flatMap(({ path, name, others }): ConfigProblem[] => {
    const failure = failureOf(models, name);
    const origin = originOf(path);
    if (failure === null || origin === null) return [];
    // Whoever has another that answers is worse off than he thinks, but not mute.
    const severity = others.some((other) => failureOf(models, other) === null) ? "warning" : "error";
    const code = failure.code === "model.no_key" ? "config.no_key" : "config.unknown_model";
    return [{ severity, code, file: configFile, ...origin, path: path.join("."), message: failure.message, fix: failure.hint }];
  });
}

function failureOf(models: Models, name: string): Failure | null {
  try {
    models.resolve(name);
    return null;
  } catch (error) {
    return asFailure(error);
  }
}

/** Everybody's where somebody inherits it, and every agent's own. */
function namedModels({ config, quarantined }: Settings): Named[] {
  const agents = Object.entries(config.agents).filter(([id]) => !quarantined.has(id));
  const inherits = agents.some(([, { model }]) => model === undefined);
  return [
    ...(inherits ? listed(["model"], config.model) : []),
    ...listed(["subagent", "model"], config.subagent.model),
    ...agents.flatMap(([id, { model, subagents }]) => [
      ...listed(["agents", id, "model"], model),
      ...listed(["agents", id, "subagents", "model"], subagents.model),
    ]),
  ];
}

function listed(path: ConfigPath, names: string | readonly string[] | undefined): Named[] {
  if (names === undefined) return [];
  const all = typeof names === "string" ? [names] : names;
  // One stands at its key, several each in the list.
  return all.map((name, index) => ({
    path: all.length === 1 ? path : [...path, index],
    name,
    others: all.filter((other) => other !== name),
  }));
}
