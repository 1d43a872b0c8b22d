import { Failure } from "../kernel/failure.ts";

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

/** The first problem in words, all of them in the details. */
export function configFailure(problems: readonly ConfigProblem[], cause?: unknown): Failure {
  const [first] = problems;
  if (!first) return new Failure("internal.bug", "a config was refused without a problem", { cause });
  const more = problems.length === 1 ? "" : ` (and ${problems.length - 1} more)`;
  return new Failure("config.invalid", `${inWords(first)}${more}`, { cause, details: { problems } });
}

/** `file:line:column: key: what is wrong`. */
export function inWords({ file, line, column, path, message }: ConfigProblem): string {
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}`;
}
