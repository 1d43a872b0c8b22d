import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type ConfigReader, readerOf } from "../contract/config-readers.ts";
import { policyProblems } from "../deciders/policy/policy-problems.ts";
import { routingProblems } from "../deciders/routing/routing-problems.ts";
import { redactor } from "../kernel/redact.ts";
import { configJsonSchema } from "../settings/config-json-schema.ts";
import type { ConfigPath, ConfigProblem } from "../settings/config-problem.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { inspectSettings, type Settings } from "../settings/load-settings.ts";
import { namedSecrets } from "../settings/secrets.ts";
import { isMap } from "../settings/value-at.ts";
import { type ConfigExcerpt, configExcerpt } from "./config-excerpt.ts";
import { modelProblems } from "./model-problems.ts";

export interface CheckedProblem extends ConfigProblem {
  /** The line of the file, without what is secret in it; null where there is none to show. */
  readonly source: ConfigExcerpt | null;
}

export interface CheckedConfig {
  readonly ok: boolean;
  readonly file: string;
  /** False: there is no file, and everything is as by default. */
  readonly exists: boolean;
  readonly problems: readonly CheckedProblem[];
}

/** Everything that can be said about a config without starting on it. */
export function checkConfig(where: Whereabouts, file: string | undefined): CheckedConfig {
  const at = { ...where, ...(file === undefined ? {} : { config: file }) };
  const { settings, source, problems } = inspectSettings(at, process.env);
  const named = at.config ? resolve(at.config) : join(homeOf(at, process.env), "guildhall.yaml");
  const all = [...problems, ...(settings === null ? [] : [...afterwards(settings), ...notReadYet(settings, source?.value)])];
  const redact = redactor(namedSecrets(source, (name) => process.env[name], ""));
  const lines = linesOf(named);
  const sorted = all.toSorted((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
  return {
    ok: !all.some(({ severity }) => severity === "error"),
    file: named,
    exists: lines !== null,
    problems: sorted.map((problem) => ({
      ...problem,
      source: problem.file === named ? configExcerpt(lines ?? [], problem, redact, source !== null) : null,
    })),
  };
}

/** What can be said about a config once it can be read. */
function afterwards(settings: Settings): ConfigProblem[] {
  return [...policyProblems(settings), ...routingProblems(settings), ...modelProblems(settings)];
}

/** Keys that somebody has written and nothing acts on yet: better said than found out. */
function notReadYet(settings: Settings, written: unknown): ConfigProblem[] {
  const found: ConfigProblem[] = [];
  const told = new Set<ConfigReader>();
  const visit = (value: unknown, path: ConfigPath): void => {
    const reader = readerOf(path);
    const origin = settings.originOf(path);
    if (reader?.awaits != null && origin && settings.configFile !== null) {
      const { awaits } = reader;
      // The same key of many agents is one thing to know.
      if (told.has(reader)) return;
      told.add(reader);
      const message = `nothing reads this yet: it awaits ${awaits}`;
      const fix = "Leave it for later, or remove it; it has no effect now.";
      found.push({
        severity: "warning",
        code: "config.not_read_yet",
        file: settings.configFile,
        ...origin,
        path: path.join("."),
        message,
        fix,
      });
      return;
    }
    if (Array.isArray(value)) for (const [index, inner] of value.entries()) visit(inner, [...path, index]);
    else if (isMap(value)) for (const [key, inner] of Object.entries(value)) visit(inner, [...path, key]);
  };
  visit(written, []);
  return found;
}

export function configSchemaAsJson(): Record<string, unknown> {
  return configJsonSchema();
}

function rank({ severity }: ConfigProblem): number {
  return severity === "error" ? 0 : 1;
}

function linesOf(file: string): string[] | null {
  try {
    return readFileSync(file, "utf8").split(/\r?\n/);
  } catch {
    return null;
  }
}
