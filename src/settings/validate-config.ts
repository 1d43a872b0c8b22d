import type { z } from "zod";
import { agentId, type Config, configSchema } from "../contract/config.ts";
import type { Redact } from "../kernel/redact.ts";
import { agentFindings } from "./agent-checks.ts";
import { channelFindings } from "./channel-checks.ts";
import { type ConfigPath, type ConfigProblem, configFailure, type Finding } from "./config-problem.ts";
import { schemaFindings } from "./schema-findings.ts";
import { secretFindings } from "./secrets.ts";
import { toolFindings } from "./tool-checks.ts";
import { mapAt, valueAt } from "./value-at.ts";
import type { YamlSource } from "./yaml-source.ts";

export interface ValidatedConfig {
  readonly config: Config;
  readonly quarantined: ReadonlyMap<string, readonly ConfigProblem[]>;
  readonly warnings: readonly ConfigProblem[];
}

export interface Around {
  readonly file: string;
  readonly home: string;
  readonly knownTools: readonly string[];
  readonly knownChannels: readonly string[];
  /** Applied to what is said about values: a secret may stand where it does not belong. */
  readonly redact: Redact;
}

/**
 * The typed config. An error inside one agent's section takes that agent out, and nothing else; any other error refuses the whole,
 * with every problem there is.
 */
export function validateConfig(source: YamlSource, around: Around): ValidatedConfig {
  const first = configSchema.safeParse(source.value ?? {});
  const written = withNumbers(source, first.error?.issues ?? []);
  const parsed = written === source.value ? first : configSchema.safeParse(written);
  const findings = withoutEchoes([
    ...source.findings,
    ...agentFindings(written, { home: around.home, configFile: around.file }),
    ...channelFindings(written, around.knownChannels),
    ...toolFindings(written, around.knownTools),
    ...secretFindings(source),
    ...schemaFindings(parsed.error?.issues ?? [], source),
  ]);
  const problems = sorted(findings.map((finding) => [finding, placed(finding, source, around)] as const));
  const errors = problems.filter(([finding]) => finding.severity === "error");
  if (errors.some(([finding]) => agentOf(finding.path) === undefined)) throw configFailure(problems.map(([, problem]) => problem));

  const quarantined = new Map<string, ConfigProblem[]>();
  for (const [finding, problem] of errors) {
    const id = agentOf(finding.path) as string;
    quarantined.set(id, [...(quarantined.get(id) ?? []), problem]);
  }
  return {
    config:
      errors.length === 0
        ? (parsed.data as Config)
        : configSchema.parse(
            withoutBroken(
              written,
              errors.map(([finding]) => finding),
            ),
          ),
    quarantined,
    warnings: problems.flatMap(([{ severity }, problem]) => (severity === "warning" ? [problem] : [])),
  };
}

/** The agent in whose own section the path lies. */
function agentOf(path: ConfigPath): string | undefined {
  return path[0] === "agents" && path.length > 1 ? String(path[1]) : undefined;
}

/**
 * Broken agents keep their default flag, so that what is theirs is refused and not given to another; what is no id is left out. Where that
 * was the default, nobody is: `main`, or the only one that is left, would be by name alone.
 */
function withoutBroken(written: unknown, errors: readonly Finding[]): unknown {
  const broken = new Set(errors.map(({ path }) => agentOf(path)));
  const twice = new Set(errors.flatMap(({ path, code }) => (code === "config.second_default" ? [agentOf(path)] : [])));
  let isDefaultLeftOut = false;
  const agents = Object.entries(mapAt(written, ["agents"])).flatMap(([id, section]) => {
    if (!broken.has(id)) return [[id, section]];
    const isDefault = valueAt(section, ["default"]) === true && !twice.has(id);
    if (agentId.safeParse(id).success) return [[id, isDefault ? { default: true } : {}]];
    isDefaultLeftOut ||= isDefault;
    return [];
  });
  return { ...(written as object), agents: Object.fromEntries(agents), ...(isDefaultLeftOut ? { unrouted: "refuse" } : {}) };
}

/** `port: ${PORT}` is a text once it is replaced; where the schema wants a number or a yes or no, it is taken for one. */
function withNumbers(source: YamlSource, issues: readonly z.core.$ZodIssue[]): unknown {
  const value = source.value ?? {};
  let changed: unknown = value;
  for (const issue of issues) {
    const path = issue.path as ConfigPath;
    if (issue.code !== "invalid_type" || !source.substitutionAt(path)) continue;
    const meant = literal(issue.expected, String(valueAt(value, path)));
    if (meant !== undefined) changed = replaced(changed, path, meant);
  }
  return changed;
}

function literal(expected: string, text: string): number | boolean | undefined {
  if (expected === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  return (expected === "number" || expected === "int") && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

function replaced(value: unknown, [part, ...rest]: ConfigPath, by: unknown): unknown {
  if (part === undefined) return by;
  const inner = replaced(valueAt(value, [part]), rest, by);
  if (Array.isArray(value)) return value.with(Number(part), inner);
  return { ...(value as object), [part]: inner };
}

/** One complaint about a place is enough: what an unset name leaves behind is no second mistake. */
function withoutEchoes(findings: readonly Finding[]): Finding[] {
  const told = new Set<string>();
  return findings.filter(({ path, severity }) => {
    const place = JSON.stringify(path);
    if (told.has(place)) return false;
    if (severity === "error") told.add(place);
    return true;
  });
}

function placed({ severity, code, path, at, message, fix }: Finding, source: YamlSource, { file, redact }: Around): ConfigProblem {
  const { line, column } = typeof at === "object" ? at : at === "key" ? source.originOfKey(path) : source.originOf(path);
  return { severity, code, file, line, column, path: redact(path.join(".")), message: redact(message), fix: redact(fix) };
}

function sorted(problems: (readonly [Finding, ConfigProblem])[]): (readonly [Finding, ConfigProblem])[] {
  const rank = (severity: string): number => (severity === "error" ? 0 : 1);
  return problems.toSorted(([, a], [, b]) => rank(a.severity) - rank(b.severity) || a.line - b.line || a.column - b.column);
}
