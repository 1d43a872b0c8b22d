import { isUtf8 } from "node:buffer";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { type Config, configSchema } from "../contract/config.ts";
import { sha256 } from "../kernel/canonical-json.ts";
import { Failure, isFailure } from "../kernel/failure.ts";
import { type Redact, redactor } from "../kernel/redact.ts";
import { type ConfigPath, type ConfigProblem, configFailure, type Origin } from "./config-problem.ts";
import { type Environment, homeOf, type Whereabouts } from "./home.ts";
import { type ModelKeys, modelKeysOf, NO_MODEL_KEYS } from "./model-keys.ts";
import { type OwnSections, sectionsLeft, withOwnSections } from "./own-sections.ts";
import { parseYamlAside, WORTH_A_PROCESS } from "./parse-aside.ts";
import { namedSecrets, Secrets, secretsIn } from "./secrets.ts";
import { type ValidatedConfig, validateConfig } from "./validate-config.ts";
import { readYaml, type YamlSource, yamlSource } from "./yaml-source.ts";

export interface Settings {
  readonly home: string;
  /** Null: there is no file, and everything is as by default. */
  readonly configFile: string | null;
  /** The file as it is written, `${NAME}` not replaced; empty without a file. */
  readonly configText: string;
  /** Of the text: what an edit must have been based on, and what tells two revisions apart. */
  readonly configHash: string;
  /** Agents whose section is broken are in it with nothing but their default flag; those whose id is none are not in it. */
  readonly config: Config;
  /** Agents whose own section is broken, by id as written, with everything that is wrong in it. */
  readonly quarantined: ReadonlyMap<string, readonly ConfigProblem[]>;
  readonly warnings: readonly ConfigProblem[];
  readonly secrets: Secrets;
  readonly modelKeys: ModelKeys;
  /** Where a value stands in the file; of one that nobody wrote, where the nearest thing around it does. Null without a file. */
  originOf(path: ConfigPath): Origin | null;
  /** Whether the file itself says this. */
  isWritten(path: ConfigPath): boolean;
  /** `sqlite:<path>` or `postgres://…`: `store:`, else `$GUILDHALL_STORE`, else the home's own file. */
  readonly storeLocation: string;
}

export interface LoadOptions {
  /** Tools that the program around us brings along. */
  readonly knownTools?: readonly string[];
  /** Platforms whose channels it brings along. */
  readonly knownChannels?: readonly string[];
  /** Instead of what the config file says: a config that is not written yet, or that of another node. */
  readonly text?: string;
  /** What holds on this machine whatever that text says. */
  readonly own?: OwnSections;
}

/** Reads, and changes nothing: a home that does not exist yet is a valid one. Throws `config.invalid` with every problem in its details. */
export function loadSettings(where: Whereabouts, environment: Environment, options: LoadOptions = {}): Settings {
  return settingsOf(readConfig(where, environment, options), options);
}

/** The same, for a daemon that has other things to do meanwhile: a large file is parsed in a process of its own. */
export async function loadSettingsAside(where: Whereabouts, environment: Environment, options: LoadOptions = {}): Promise<Settings> {
  const files = readFiles(where, environment, options);
  const { text = "", file, dotEnv } = files;
  if (text.length < WORTH_A_PROCESS) return settingsOf({ ...files, source: sourceOf(files) }, options);
  const parsed = await parseYamlAside({ text, file, names: { ...dotEnv.values, ...environment } });
  return settingsOf({ ...files, source: yamlSource(parsed) }, options);
}

/** A config file that could be read, sound or not. */
interface ReadConfig {
  readonly home: string;
  readonly file: string;
  readonly text: string | undefined;
  readonly source: YamlSource | null;
  readonly dotEnv: DotEnv;
  readonly lookUp: (name: string) => string | undefined;
}

function readConfig(where: Whereabouts, environment: Environment, options: LoadOptions): ReadConfig {
  const files = readFiles(where, environment, options);
  return { ...files, source: sourceOf(files) };
}

function sourceOf({ text, file, lookUp }: Omit<ReadConfig, "source">): YamlSource | null {
  return text === undefined ? null : readYaml(text, file, lookUp);
}

function readFiles(where: Whereabouts, environment: Environment, options: LoadOptions): Omit<ReadConfig, "source"> {
  const home = homeOf(where, environment);
  const dotEnv = readDotEnv(join(home, ".env"));
  const lookUp = (name: string): string | undefined => environment[name] ?? dotEnv.values[name];
  const file = where.config ? resolve(where.config) : join(home, "guildhall.yaml");
  const text = options.text ?? readConfigText(file);
  if (text === undefined && where.config) throw new Failure("config.invalid", `${file} does not exist`, { hint: "Check --config." });
  return { home, file, text, dotEnv, lookUp };
}

function settingsOf({ home, file, text, source: written, dotEnv, lookUp }: ReadConfig, options: LoadOptions): Settings {
  const source = written !== null && options.own ? withOwnSections(written, options.own) : written;
  // A variable that is set to nothing hides no key in the file.
  const keyOf = (name: string): string | undefined => lookUp(name) || dotEnv.values[name];
  const secrets = namedSecrets(source, keyOf, lookUp("GUILDHALL_STORE") ?? "");
  let redact: Redact | undefined;
  const validated: ValidatedConfig =
    source === null
      ? { config: configSchema.parse({}), quarantined: new Map(), warnings: [] }
      : validateConfig(source, {
          file,
          home,
          knownTools: options.knownTools ?? [],
          knownChannels: options.knownChannels ?? [],
          // Most files are sound, and then nothing is said about any of them.
          redact: (said) => {
            redact ??= redactor(secrets);
            return redact(said);
          },
        });
  const location = storeLocation(validated.config, lookUp("GUILDHALL_STORE"), home);
  return {
    home,
    configFile: text === undefined ? null : file,
    configText: text ?? "",
    configHash: sha256(text ?? ""),
    config: validated.config,
    quarantined: validated.quarantined,
    warnings: [...validated.warnings, ...dotEnv.warnings],
    secrets: new Secrets(validated.config, secrets),
    modelKeys: modelKeysOf(keyOf),
    originOf: (path) => source?.originOf(path) ?? null,
    isWritten: (path) => source?.isWritten(path) ?? false,
    storeLocation: location,
  };
}

/** For a program that hands in its config: nothing of it stands in a file. */
export function settingsWithoutFile(config: Config, home: string, modelKeys: ModelKeys = NO_MODEL_KEYS): Settings {
  return {
    home,
    configFile: null,
    configText: "",
    configHash: sha256(""),
    config,
    quarantined: new Map(),
    warnings: [],
    secrets: new Secrets(config, secretsIn(config)),
    modelKeys,
    originOf: () => null,
    isWritten: () => false,
    storeLocation: storeLocation(config, undefined, home),
  };
}

/** As `loadSettings`, with problems as values. */
export function inspectSettings(where: Whereabouts, environment: Environment, options: LoadOptions = {}): Inspection {
  let read: ReadConfig | undefined;
  try {
    read = readConfig(where, environment, options);
    const settings = settingsOf(read, options);
    return { settings, source: read.source, problems: [...[...settings.quarantined.values()].flat(), ...settings.warnings] };
  } catch (error) {
    const problems = isFailure(error, "config.invalid") ? (error.details.problems as readonly ConfigProblem[] | undefined) : undefined;
    if (!problems) throw error;
    return { settings: null, source: read?.source ?? null, problems };
  }
}

/** What a file says of this machine that cannot be used as a whole. */
export interface OwnRemains {
  /** Null: nobody can tell. */
  readonly storeLocation: string | null;
  readonly store: Config["store"];
  readonly server: Config["server"] | null;
}

export function remainsOf(where: Whereabouts, environment: Environment): OwnRemains {
  const read = (text?: string): Omit<ReadConfig, "source"> | undefined => {
    try {
      return readFiles(where, environment, text === undefined ? {} : { text });
    } catch {
      return undefined;
    }
  };
  // A file that is gone or cannot be opened says nothing; the environment may.
  const files = read() ?? read("");
  const { store, server } = files ? sectionsLeft(files.text ?? "", files.file, files.lookUp) : {};
  const named = files?.lookUp("GUILDHALL_STORE");
  const known = store ?? named;
  return { storeLocation: known && POSTGRES.test(known) ? known : null, store, server: server ?? null };
}

export interface Inspection {
  /** Null: nobody can start with this config. */
  readonly settings: Settings | null;
  /** The values as written; null without a file, and for one that is no YAML. */
  readonly source: YamlSource | null;
  readonly problems: readonly ConfigProblem[];
}

const POSTGRES = /^postgres(ql)?:\/\//;

function storeLocation(config: Config, named: string | undefined, home: string): string {
  const store = config.store ?? (named || "sqlite");
  if (store === "sqlite") return `sqlite:${join(home, "state.db")}`;
  if (POSTGRES.test(store)) return store;
  throw new Failure("config.invalid", "$GUILDHALL_STORE must be sqlite or postgres://…", { hint: "Correct or unset GUILDHALL_STORE." });
}

interface DotEnv {
  readonly values: Environment;
  readonly warnings: readonly ConfigProblem[];
}

const OTHERS_MAY_READ = 0o044;

function readDotEnv(file: string): DotEnv {
  const text = readText(file);
  if (text === undefined) return { values: {}, warnings: [] };
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  const open = problemAt(file, "warning", "config.readable_secrets", "others than its owner may read it", `Run: chmod 600 ${file}`);
  // Windows has no such bits, and reports them all.
  const warnings = process.platform !== "win32" && (mode & OTHERS_MAY_READ) !== 0 ? [open] : [];
  // Some editors begin a file with a mark, which would become part of the first name.
  return { values: parseEnv(text.replace(/^\uFEFF/, "")) as Environment, warnings };
}

/** Other signs than UTF-8's cannot be kept by whoever edits the file. */
function readConfigText(file: string): string | undefined {
  const bytes = readBytes(file);
  if (bytes === undefined || isUtf8(bytes)) return bytes?.toString("utf8");
  const before = bytes.toString("utf8").split("\uFFFD", 1)[0] ?? "";
  const place = { line: before.split("\n").length, column: before.length - before.lastIndexOf("\n") };
  const problem = problemAt(file, "error", "config.malformed", "the file is not written in UTF-8", "Save it as UTF-8 in the editor.");
  throw configFailure([{ ...problem, ...place }]);
}

function readText(file: string): string | undefined {
  return readBytes(file)?.toString("utf8");
}

function readBytes(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    const problem = problemAt(
      file,
      "error",
      "config.unreadable",
      `the file cannot be read (${code})`,
      "Make it a file that this user may read.",
    );
    throw configFailure([problem], error);
  }
}

function problemAt(file: string, severity: "error" | "warning", code: string, message: string, fix: string): ConfigProblem {
  return { severity, code, file, line: 1, column: 1, path: "", message, fix };
}
