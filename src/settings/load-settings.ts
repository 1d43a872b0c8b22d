import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { type Config, configSchema } from "../contract/config.ts";
import { sha256 } from "../kernel/canonical-json.ts";
import { Failure } from "../kernel/failure.ts";
import { type ConfigProblem, configFailure } from "./config-problem.ts";
import { type Environment, homeOf, type Whereabouts } from "./home.ts";
import { validateConfig } from "./validate-config.ts";
import { type ConfigPath, type Origin, readYaml } from "./yaml-source.ts";

export interface Settings {
  readonly home: string;
  /** Null: there is no file, and everything is as by default. */
  readonly configFile: string | null;
  /** The file as it is written, `${NAME}` not replaced; empty without a file. */
  readonly configText: string;
  /** Of the text: what an edit must have been based on, and what tells two revisions apart. */
  readonly configHash: string;
  /** Agents whose section is broken are in it with nothing but their default flag. */
  readonly config: Config;
  /** Agents whose own section is broken, by id as written, with everything that is wrong in it. */
  readonly quarantined: ReadonlyMap<string, readonly ConfigProblem[]>;
  readonly warnings: readonly ConfigProblem[];
  /** Where a value stands in the file; null without one, and for values that nobody wrote. */
  originOf(path: ConfigPath): Origin | null;
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
  const source = text === undefined ? null : readYaml(text, file, lookUp);
  const config = source === null ? configSchema.parse({}) : validateConfig(source, file);
  return {
    home,
    configFile: text === undefined ? null : file,
    configText: text ?? "",
    configHash: sha256(text ?? ""),
    config,
    quarantined: new Map(),
    warnings: [],
    originOf: (path) => source?.originOf(path) ?? null,
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
    throw configFailure(
      [
        {
          file,
          line: 1,
          column: 1,
          path: "",
          message: `the file cannot be read (${code})`,
          severity: "error",
          code: "config.unreadable",
          fix: "",
        },
      ],
      error,
    );
  }
}
