import type { Config } from "../contract/config.ts";
import { Secret } from "../contract/secret.ts";
import { type ConfigPath, type Finding, warningAt } from "./config-problem.ts";
import { isSecretPosition, SECRET_POSITIONS } from "./secret-positions.ts";
import { mapAt, valueAt } from "./value-at.ts";
import type { YamlSource } from "./yaml-source.ts";

export type NamedSecret = readonly [name: string, value: string];

/** What providers' keys are called when nobody names them. */
const USUAL_KEYS = [
  "OPENAI_API_KEY",
  "ANTHROPIC_API_KEY",
  "GOOGLE_API_KEY",
  "GEMINI_API_KEY",
  "GOOGLE_GENERATIVE_AI_API_KEY",
  "OPENROUTER_API_KEY",
];
/** Beside tokens, an MCP server's variables and headers hold much that is none: only what is called like a secret is taken for one. */
const SOUNDS_SECRET = /key|token|secret|pass|auth|credential|cookie/i;

/** The secrets of one revision of the config: for their users, and for whoever must keep them out of what is written. */
export class Secrets {
  readonly #config: Pick<Config, "agents">;
  readonly #values: readonly NamedSecret[];

  constructor(config: Pick<Config, "agents">, values: readonly NamedSecret[]) {
    this.#config = config;
    this.#values = values;
  }

  /** The variables of this agent and of no other, revealed: to be asked for where they are used, and not kept. */
  of(agentId: string): Readonly<Record<string, string>> {
    const env = Object.hasOwn(this.#config.agents, agentId) ? (this.#config.agents[agentId]?.env ?? {}) : {};
    return Object.fromEntries(Object.entries(env).map(([name, secret]) => [name, secret.reveal()]));
  }

  /** Every secret there is, with the name that stands for it where its value must not. */
  values(): readonly NamedSecret[] {
    return this.#values;
  }

  toJSON(): string {
    return "[secrets]";
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[secrets]";
  }
}

/** From what is written, so that the secrets of an agent whose section is broken are kept as well. */
export function namedSecrets(source: YamlSource | null, environment: (name: string) => string | undefined, store: string): NamedSecret[] {
  const written = source === null ? [] : secretPaths(source.value).flatMap((path) => secretsAt(path, source));
  const usual = USUAL_KEYS.flatMap((name): NamedSecret[] => named(name, environment(name)));
  const inFile = valueAt(source?.value, ["store"]);
  const all = [...written, ...usual, ...passwordIn(store), ...passwordIn(typeof inFile === "string" ? inFile : "")];
  // What everybody calls an agent or a pool by cannot be hidden, and hiding it would leave nobody to call.
  const names = new Set(
    ["agents", "pools", "channels", "providers", "identities"].flatMap((key) => Object.keys(mapAt(source?.value, [key]))),
  );
  return all.filter(([, value]) => !names.has(value));
}

/** Of a config that stands in no file: each by the key at which it stands. */
export function secretsIn(value: unknown, key = ""): NamedSecret[] {
  if (value instanceof Secret) return [[key, value.reveal()]];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, inner]) => secretsIn(inner, name));
}

function secretsAt(path: ConfigPath, source: YamlSource): NamedSecret[] {
  const substitution = source.substitutionAt(path);
  if (substitution) return [...substitution.names];
  return isLiteralSecret(path) ? named(String(path.at(-1)), valueAt(source.value, path)) : [];
}

function named(name: string, value: unknown): NamedSecret[] {
  return (typeof value === "string" || typeof value === "number") && value !== "" ? [[name, String(value)]] : [];
}

function passwordIn(store: string): NamedSecret[] {
  const written = /^postgres(?:ql)?:\/\/[^/@]*?:([^@]+)@/.exec(store)?.[1];
  if (written === undefined) return [];
  try {
    return [
      ["store", written],
      ["store", decodeURIComponent(written)],
    ];
  } catch {
    return [["store", written]];
  }
}

/** A secret that stands in the file itself travels with every copy of it. */
export function secretFindings(source: YamlSource): Finding[] {
  return secretPaths(source.value).flatMap((path) => {
    const value = valueAt(source.value, path);
    if ((typeof value !== "string" && typeof value !== "number") || value === "") return [];
    if (source.substitutionAt(path) || !isLiteralSecret(path)) return [];
    const name = suggestedName(path);
    const fix = `Write \${${name}} and put ${name}=… into .env in the home.`;
    return [warningAt(path, "config.literal_secret", "a secret is written in the config itself", fix)];
  });
}

function isLiteralSecret(path: ConfigPath): boolean {
  return path[2] !== "mcp" || SOUNDS_SECRET.test(String(path.at(-1)));
}

function suggestedName(path: ConfigPath): string {
  const [section, owner] = path;
  const key = String(path.at(-1));
  const parts = section === "agents" ? [owner, key] : [owner, path.length === 5 ? path[3] : "", key];
  return parts
    .filter((part) => part !== "")
    .join("_")
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_")
    .replace(/^(\d)/, "_$1");
}

/** The places at which secrets are written. */
function secretPaths(value: unknown): ConfigPath[] {
  return SECRET_POSITIONS.flatMap((position) => matching(value, position.split("."), [])).filter(isSecretPosition);
}

function matching(value: unknown, [part, ...rest]: readonly string[], path: ConfigPath): ConfigPath[] {
  if (part === undefined) return [path];
  const here = mapAt(value, path);
  const keys = part === "*" ? Object.keys(here) : Object.hasOwn(here, part) ? [part] : [];
  return keys.flatMap((key) => matching(value, rest, [...path, key]));
}
