import type { Config } from "../contract/config.ts";
import { Secret } from "../contract/secret.ts";
import { type ConfigPath, type Finding, warningAt } from "./config-problem.ts";
import { USUAL_KEYS } from "./model-keys.ts";
import { isSecretPosition, SECRET_POSITIONS } from "./secret-positions.ts";
import { passwordsIn } from "./url-passwords.ts";
import { isMap, mapAt, valueAt } from "./value-at.ts";
import type { YamlSource } from "./yaml-source.ts";

export type NamedSecret = readonly [name: string, value: string];

/** Addresses, which may hold a password. */
const ADDRESSES = [
  "store",
  "providers.*.base_url",
  "channels.*.api_url",
  "channels.*.accounts.*.api_url",
  "channels.*.url",
  "channels.*.accounts.*.url",
  "agents.*.mcp.*.url",
];
/** Beside tokens, an MCP server's variables and headers hold much that is none: only what is called like a secret is taken for one. */
const SOUNDS_SECRET = /key|token|secret|pass|pwd|auth|cred|cookie/i;
/** What is called so is a secret wherever it is put: as an argument of a server, in an address. */
const IS_CALLED_SECRET = /(^|[_-])(api_?key|key|token|secret|password|passwd|pass|pwd|credentials?)s?$/i;

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
  // A broken section is stored with the rest of the file: what is called a secret in it may stand under a misspelt key.
  const misplaced = leavesBelow(valueAt(source?.value, ["agents"]), ["agents"]).filter((path) => IS_CALLED_SECRET.test(keyOf(path)));
  const written = source === null ? [] : [...secretPaths(source.value), ...misplaced].flatMap((path) => secretsAt(path, source));
  const elsewhere = source?.substituted().filter(([name]) => IS_CALLED_SECRET.test(name)) ?? [];
  const usual = Object.values(USUAL_KEYS)
    .flat()
    .flatMap((name): NamedSecret[] => named(name, environment(name)));
  const passwords = ADDRESSES.flatMap((place) =>
    leavesAt(source?.value, place).flatMap((path) => passwordsAt(String(path.at(-1)), valueAt(source?.value, path))),
  );
  // What everybody calls an agent or a pool by cannot be hidden, and hiding it would leave nobody to call.
  const names = new Set(
    ["agents", "pools", "channels", "providers", "identities"].flatMap((key) => Object.keys(mapAt(source?.value, [key]))),
  );
  const all = [...written, ...(source?.repeated ?? []), ...elsewhere, ...usual, ...passwords, ...passwordsAt("store", store)];
  const nameOf = new Map(all.toReversed().map(([name, value]) => [value, name]));
  for (const name of names) nameOf.delete(name);
  return [...nameOf].map(([value, name]) => [name, value]);
}

/** Of a config that stands in no file: each by the key at which it stands. */
export function secretsIn(value: unknown, key = ""): NamedSecret[] {
  if (value instanceof Secret) return [[key, value.reveal()]];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, inner]) => secretsIn(inner, name));
}

function secretsAt(path: ConfigPath, source: YamlSource): NamedSecret[] {
  const key = keyOf(path);
  const substitution = source.substitutionAt(path);
  if (substitution) return substitution.names.filter(([name, value]) => !isOrdinary(`${key} ${name}`, value));
  const value = valueAt(source.value, path);
  if (!isLiteralSecret(path) || isOrdinary(key, String(value))) return [];
  // A text over several lines, or with signs that need another spelling, is not found in the file by its value.
  const spelling = source.spellingAt(path) ?? "";
  return [...named(key, value), ...named(key, spelling.includes(String(value)) ? "" : spelling)];
}

/** `MODE: production` is no secret, and hiding the word would take it out of everybody's sentences. */
function isOrdinary(name: string, value: string): boolean {
  return /^[a-z]{1,12}$/i.test(value) && !SOUNDS_SECRET.test(name);
}

function named(name: string, value: unknown): NamedSecret[] {
  return (typeof value === "string" || typeof value === "number") && value !== "" ? [[name, String(value)]] : [];
}

/** Of what stands in a list, the key of the list. */
function keyOf(path: ConfigPath): string {
  return String(path.findLast((part) => typeof part === "string"));
}

function passwordsAt(name: string, address: unknown): NamedSecret[] {
  return typeof address === "string" ? passwordsIn(address).map((password) => [name, password]) : [];
}

/** A secret that stands in the file itself travels with every copy of it. */
export function secretFindings(source: YamlSource): Finding[] {
  return secretPaths(source.value).flatMap((path) => {
    if (!isSecretPosition(path) || typeof path.at(-1) === "number") return [];
    const value = valueAt(source.value, path);
    if ((typeof value !== "string" && typeof value !== "number") || value === "") return [];
    if (source.substitutionAt(path) || !isLiteralSecret(path)) return [];
    const name = suggestedName(path);
    const fix = `Write \${${name}} and put ${name}=… into .env in the home.`;
    return [warningAt(path, "config.literal_secret", "a secret is written in the config itself", fix)];
  });
}

function isLiteralSecret(path: ConfigPath): boolean {
  return path[2] !== "mcp" || typeof path[5] !== "string" || SOUNDS_SECRET.test(path[5]);
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

/** The places at which secrets are written, also by somebody who mistook their form. */
function secretPaths(value: unknown): ConfigPath[] {
  return SECRET_POSITIONS.flatMap((position) => leavesAt(value, position));
}

/** The texts at a place of this form; of one in whose stead something else is written, that. */
function leavesAt(value: unknown, position: string): ConfigPath[] {
  return matching(value, position.split("."), []);
}

function matching(here: unknown, [part, ...rest]: readonly string[], path: ConfigPath): ConfigPath[] {
  if (part === undefined || (rest.length === 0 && !isMap(here))) return leavesBelow(here, path);
  if (!isMap(here)) return [];
  const keys = part === "*" ? Object.keys(here) : Object.hasOwn(here, part) ? [part] : [];
  return keys.flatMap((key) => matching(here[key], rest, [...path, key]));
}

function leavesBelow(value: unknown, path: ConfigPath): ConfigPath[] {
  if (Array.isArray(value)) return value.flatMap((inner, index) => leavesBelow(inner, [...path, index]));
  if (isMap(value)) return Object.keys(value).flatMap((key) => leavesBelow(value[key], [...path, key]));
  return value === undefined || value === null ? [] : [path];
}
