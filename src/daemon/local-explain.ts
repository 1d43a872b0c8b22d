import { configSchema } from "../contract/config.ts";
import { type ConfigReader, readerOf, readersBelow } from "../contract/config-readers.ts";
import { Failure } from "../kernel/failure.ts";
import { didYouMean } from "../kernel/nearest.ts";
import { Redaction } from "../kernel/redact.ts";
import type { Agent } from "../records/agents/agent.ts";
import { revisionWithoutFile } from "../records/agents/revision.ts";
import { type ConfigPath, configFailure } from "../settings/config-problem.ts";
import type { Whereabouts } from "../settings/home.ts";
import { inspectSettings, type Settings } from "../settings/load-settings.ts";
import { formsAt, keysAt, takesAnyKey } from "../settings/schema-walk.ts";
import { isNearSecret } from "../settings/secret-positions.ts";
import { withoutPasswords } from "../settings/url-passwords.ts";
import { isMap, valueAt } from "../settings/value-at.ts";
import type { YamlSource } from "../settings/yaml-source.ts";

export interface ExplainedKey {
  readonly key: string;
  readonly value: unknown;
  readonly from: "written" | "inherited" | "default";
  /** Where it is written, or what it is inherited from; in words. */
  readonly because: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly column: number | null;
  readonly means: string;
  readonly readBy: readonly string[];
}

/** What an agent takes from everybody's settings where it says nothing, and under which name it knows it. */
const INHERITED: Readonly<Record<string, keyof Agent>> = {
  model: "model",
  personality: "personality",
  budget: "budget",
  sandbox: "sandbox",
  dm_scope: "dmScope",
  group_scope: "groupScope",
  memory_scope: "memoryScope",
  workspace_scope: "workspaceScope",
  nodes: "nodes",
};

/** The value of a key, where it comes from, and who reads it. */
export function explainKey(where: Whereabouts, key: string): ExplainedKey {
  const { settings, source, problems } = inspectSettings(where, process.env);
  if (settings === null) throw configFailure(problems);
  const path = pathOf(key);
  mustExist(path, key, settings, source);
  const { means, readBy } = readerOf(path) ?? together(readersBelow(path));
  const found = written(path, settings, source) ?? inheritedBy(path, settings, source) ?? byDefault(path, settings);
  const redaction = new Redaction();
  redaction.add(settings.secrets.values());
  return { key, ...found, value: redaction.value(found.value), means, readBy };
}

/** Of a key that only holds others. */
function together(readers: readonly ConfigReader[]): ConfigReader {
  return { means: "", readBy: [...new Set(readers.flatMap((reader) => reader.readBy))] };
}

type Found = Pick<ExplainedKey, "value" | "from" | "because" | "file" | "line" | "column">;

function written(path: ConfigPath, settings: Settings, source: YamlSource | null): Found | undefined {
  if (!source?.isWritten(path) || path.length === 0) return undefined;
  const { line, column } = source.originOf(path);
  const place = `${settings.configFile}:${line}:${column}`;
  const names = source.substitutionAt(path)?.written;
  const because = names === undefined ? `written in ${place}` : `written in ${place} as ${names}`;
  return { value: shown(valueAt(source.value, path), path), from: "written", because, file: settings.configFile, line, column };
}

/** Of an agent's key that it does not write itself. */
function inheritedBy(path: ConfigPath, settings: Settings, source: YamlSource | null): Found | undefined {
  const [section, id, key] = path;
  const above =
    section === "agents" && (key === "tools" || (typeof key === "string" && Object.hasOwn(INHERITED, key)))
      ? path.slice(2)
      : section === "agents" && path.slice(2).join(".") === "subagents.model"
        ? ["subagent", "model"]
        : undefined;
  if (!above) return undefined;
  // An agent's own rules replace everybody's as a whole; all else is inherited key by key.
  if (key === "tools" && source?.isWritten(["agents", id as string, "tools"])) return undefined;
  const found = written(above, settings, source);
  if (!found) return undefined;
  return { ...found, from: "inherited", because: `inherited from ${above.join(".")} (line ${found.line})` };
}

/** What nobody wrote: what an agent has where nobody says anything, else what the schema puts there. */
function byDefault(path: ConfigPath, settings: Settings): Found {
  const own = path[0] === "agents" ? path.slice(2) : path;
  const [key, ...inner] = own;
  const field = typeof key === "string" && Object.hasOwn(INHERITED, key) ? INHERITED[key] : undefined;
  const plain = revisionWithoutFile(configSchema.parse({})).agents.get("main");
  const tools = { profile: "full", also_allow: [], allow: null, deny: [], ask: [] };
  const value =
    key === "tools" ? valueAt(tools, inner) : field === undefined ? valueAt(settings.config, path) : valueAt(plain?.[field], inner);
  return { value: shown(value ?? null, path), from: "default", because: "default", file: null, line: null, column: null };
}

/** Secrets are not shown, neither by themselves nor inside what holds them. */
function shown(value: unknown, path: ConfigPath): unknown {
  if (value !== null && value !== undefined && isNearSecret(path) && typeof value !== "object") return "[secret]";
  if (Array.isArray(value)) return value.map((inner, index) => shown(inner, [...path, index]));
  if (isMap(value)) return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shown(inner, [...path, key])]));
  return typeof value === "string" ? withoutPasswords(value) : value;
}

/** `agents.coder.tools.deny`, `bindings.0.agent` or `bindings[0].agent`. */
function pathOf(key: string): ConfigPath {
  return key
    .replaceAll(/\[(\d+)\]/g, ".$1")
    .split(".")
    .map((part, index, parts) => (/^\d+$/.test(part) && isList(parts.slice(0, index)) ? Number(part) : part));
}

function isList(path: readonly string[]): boolean {
  return formsAt([...path, 0]).length > 0;
}

function mustExist(path: ConfigPath, key: string, settings: Settings, source: YamlSource | null): void {
  for (const [index, part] of path.entries()) {
    const around = path.slice(0, index);
    const known = keysAt(around);
    const entries = Object.keys((valueAt(source?.value, around) ?? valueAt(settings.config, around) ?? {}) as object);
    const isThere = typeof part === "number" || takesAnyKey(around) ? entries.includes(String(part)) : known.includes(part);
    if (isThere) continue;
    const candidates = takesAnyKey(around) ? entries : known;
    const wholes = candidates.map((candidate) => [...around, candidate].join("."));
    const here = path.slice(0, index + 1).join(".");
    const hint = wholes.length === 0 ? "Name a key of the config." : `There is: ${wholes.slice(0, 30).join(", ")}.`;
    throw new Failure(
      "usage.wrong",
      `there is no key "${here}" in ${here === key ? "the config" : `"${key}"`}${didYouMean(here, wholes)}`,
      { hint },
    );
  }
}
