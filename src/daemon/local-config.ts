import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { policyProblems } from "../deciders/policy/policy-problems.ts";
import { routingProblems } from "../deciders/routing/routing-problems.ts";
import { redactor } from "../kernel/redact.ts";
import { configJsonSchema } from "../settings/config-json-schema.ts";
import type { ConfigProblem } from "../settings/config-problem.ts";
import type { EditedConfig } from "../settings/edit-config.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { inspectSettings, type Settings } from "../settings/load-settings.ts";
import { namedSecrets } from "../settings/secrets.ts";
import { type ConfigExcerpt, configExcerpt } from "./config-excerpt.ts";
import { pullNewest } from "./edit-newest.ts";
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
  const all = [...problems, ...(settings === null ? [] : afterwards(settings))];
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

export function pullConfig(where: Whereabouts): Promise<EditedConfig> {
  return pullNewest(where, process.env);
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
