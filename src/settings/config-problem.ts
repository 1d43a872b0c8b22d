import { Failure } from "../kernel/failure.ts";

export type ConfigPath = readonly (string | number)[];

/** Where something stands in the config file. */
export interface Origin {
  readonly line: number;
  readonly column: number;
}

/** Something to correct in a config, and where. */
export interface ConfigProblem {
  readonly severity: "error" | "warning";
  /** What kind of problem, for programs: `config.unknown_key`, `binding.shadowed`, … */
  readonly code: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The key, dots between its parts; empty for the whole file. */
  readonly path: string;
  readonly message: string;
  /** What to write instead. */
  readonly fix: string;
}

/** A problem before its place in the file is looked up. */
export interface Finding {
  readonly severity: "error" | "warning";
  readonly code: string;
  readonly path: ConfigPath;
  /** The key itself, the value, or a place inside the value. */
  readonly at: "key" | "value" | Origin;
  readonly message: string;
  readonly fix: string;
}

export function errorAt(path: ConfigPath, code: string, message: string, fix: string, at: Finding["at"] = "value"): Finding {
  return { severity: "error", code, path, at, message, fix };
}

export function warningAt(path: ConfigPath, code: string, message: string, fix: string, at: Finding["at"] = "value"): Finding {
  return { severity: "warning", code, path, at, message, fix };
}

/** The first problem in words, all of them in the details. */
export function configFailure(problems: readonly ConfigProblem[], cause?: unknown): Failure {
  const [first] = problems;
  if (!first) return new Failure("internal.bug", "a config was refused without a problem", { cause });
  const more = problems.length === 1 ? "" : ` (and ${problems.length - 1} more)`;
  const hint = first.fix === "" ? {} : { hint: first.fix };
  return new Failure("config.invalid", `${inWords(first)}${more}`, { cause, details: { problems }, ...hint });
}

/** `file:line:column: key: what is wrong`. */
export function inWords({ file, line, column, path, message }: ConfigProblem): string {
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}`;
}
