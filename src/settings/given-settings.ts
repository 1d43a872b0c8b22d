import { Failure } from "../kernel/failure.ts";
import type { Environment, Whereabouts } from "./home.ts";
import { inspectSettings, type LoadOptions, type Settings } from "./load-settings.ts";

/** Of no use where the config is a program's: it has its secrets from somewhere already. */
const NOT_FOR_PROGRAMS = "config.literal_secret";

/**
 * The settings of a program that hands in its config as a value. The rules are those of the file, `${NAME}` included; but nothing has a line,
 * and a broken section of one agent is the program's mistake and refused like any other.
 */
export function givenSettings(config: object, where: Whereabouts, environment: Environment, known: Omit<LoadOptions, "text">): Settings {
  const { settings, problems } = inspectSettings({ home: where.home }, environment, { ...known, text: asText(config) });
  const errors = problems.filter(({ severity }) => severity === "error");
  const [first] = errors;
  if (first || settings === null) {
    const said = errors.map(({ path, message }) => `${path === "" ? "config" : `config.${path}`}: ${message}`);
    throw new Failure("config.invalid", said.join("; ").slice(0, 2_000), {
      details: { problems: errors.map(({ code, path, message, fix }) => ({ code, path, message, fix })) },
      ...(first?.fix ? { hint: first.fix } : {}),
    });
  }
  const warnings = settings.warnings.filter(({ code }) => code !== NOT_FOR_PROGRAMS);
  return { ...settings, configFile: null, warnings, originOf: () => null };
}

function asText(config: object): string {
  try {
    return JSON.stringify(config);
  } catch (error) {
    throw new Failure("config.invalid", `the config is not plain data: ${(error as Error).message}`, { cause: error });
  }
}
