import type { z } from "zod";
import { type Config, configSchema } from "../contract/config.ts";
import { didYouMean } from "../kernel/nearest.ts";
import { type ConfigProblem, configFailure } from "./config-problem.ts";
import type { ConfigPath, YamlSource } from "./yaml-source.ts";

/** The typed config, or every problem with its place in the file. An empty file is a valid one. */
export function validateConfig(source: YamlSource, file: string): Config {
  const result = configSchema.safeParse(source.value ?? {});
  if (result.success) return result.data;
  const problems = result.error.issues.flatMap((issue) => problemsOf(issue, source, file));
  throw configFailure(problems.sort((a, b) => a.line - b.line || a.column - b.column));
}

function problemsOf(issue: z.core.$ZodIssue, source: YamlSource, file: string): ConfigProblem[] {
  const path = issue.path as ConfigPath;
  const problem = (at: ConfigPath, key: boolean, message: string): ConfigProblem => ({
    severity: "error",
    code: "config.malformed",
    fix: "",
    file,
    ...(key ? source.originOfKey(at) : source.originOf(at)),
    path: at.join("."),
    message,
  });
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => problem([...path, key], true, `unknown key${didYouMean(key, keysAt(path))}`));
    case "invalid_key":
      return [problem(path, true, issue.issues[0]?.message ?? "this cannot be a key here")];
    case "invalid_value": {
      const found = valueAt(source.value, path);
      const names = issue.values.map(String);
      return [problem(path, false, `expected ${names.join(" or ")}, found ${shown(found)}${didYouMean(String(found), names)}`)];
    }
    case "invalid_type":
      return [problem(path, false, `expected ${inWords(issue.expected)}, found ${shown(valueAt(source.value, path))}`)];
    default:
      return [problem(path, false, issue.message)];
  }
}

function valueAt(value: unknown, path: ConfigPath): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown> | null | undefined)?.[key], value);
}

/** Values are shown by kind, not by content: a misplaced secret must not end up in a log. */
function shown(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map";
  return typeof value === "string" && value.length > 40 ? "a long text" : JSON.stringify(value);
}

function inWords(expected: string): string {
  const words: Readonly<Record<string, string>> = {
    object: "a map",
    record: "a map",
    array: "a list",
    int: "a whole number",
    boolean: "true or false",
  };
  return words[expected] ?? `a ${expected}`;
}

/** The keys that the schema knows at this place. */
function keysAt(path: ConfigPath): string[] {
  let schema: z.core.$ZodType = configSchema;
  for (const part of path) {
    const def = unwrapped(schema)._zod.def as { shape?: Record<string, z.core.$ZodType>; valueType?: z.core.$ZodType };
    const next = def.valueType ?? (def.shape && Object.hasOwn(def.shape, part) ? def.shape[part] : undefined);
    if (!next) return [];
    schema = next;
  }
  return Object.keys((unwrapped(schema)._zod.def as { shape?: object }).shape ?? {});
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  const def = schema._zod.def as { innerType?: z.core.$ZodType; in?: z.core.$ZodType };
  const inner = def.innerType ?? def.in;
  return inner ? unwrapped(inner) : schema;
}
