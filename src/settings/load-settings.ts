import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { type Config, configSchema } from "../contract/config.ts";
import { Failure } from "../kernel/failure.ts";
import { configFailure } from "./config-problem.ts";
import { type Environment, homeOf, type Whereabouts } from "./home.ts";
import { validateConfig } from "./validate-config.ts";
import { readYaml } from "./yaml-source.ts";

export interface Settings {
  readonly home: string;
  /** Null: there is no file, and everything is as by default. */
  readonly configFile: string | null;
  readonly config: Config;
  /** `sqlite:<path>` or `postgres://…`: `store:`, else `$GUILDHALL_STORE`, else the home's own file. */
  readonly storeLocation: string;
}

/** Reads, and changes nothing: a home that does not exist yet is a valid one. */
export function loadSettings(where: Whereabouts, environment: Environment): Settings {
  const home = homeOf(where, environment);
  const secrets = readSecrets(join(home, ".env"));
  const lookUp = (name: string): string | undefined => environment[name] ?? secrets[name];
  const file = where.config ? resolve(where.config) : join(home, "guildhall.yaml");
  const text = readText(file);
  if (text === undefined && where.config) throw new Failure("config.invalid", `${file} does not exist`, { hint: "Check --config." });
  const config = text === undefined ? configSchema.parse({}) : validateConfig(readYaml(text, file, lookUp), file);
  return {
    home,
    configFile: text === undefined ? null : file,
    config,
    storeLocation: storeLocation(config, lookUp("GUILDHALL_STORE"), home),
  };
}

function storeLocation(config: Config, named: string | undefined, home: string): string {
  const store = config.store ?? (named || "sqlite");
  if (store === "sqlite") return `sqlite:${join(home, "state.db")}`;
  if (/^postgres(ql)?:\/\//.test(store)) return store;
  throw new Failure("config.invalid", "$GUILDHALL_STORE must be sqlite or postgres://…", { hint: "Correct or unset GUILDHALL_STORE." });
}

function readSecrets(file: string): Environment {
  const text = readText(file);
  return text === undefined ? {} : (parseEnv(text) as Environment);
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw configFailure([{ file, line: 1, column: 1, path: "", message: `the file cannot be read (${code})` }], error);
  }
}
