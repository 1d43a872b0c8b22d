import { Failure } from "../kernel/failure.ts";

export interface ConfigProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** The key, dots between its parts; empty for the whole file. */
  readonly path: string;
  readonly message: string;
}

/** The first problem in words, all of them in the details. */
export function configFailure(problems: readonly ConfigProblem[], cause?: unknown): Failure {
  const [first] = problems;
  if (!first) return new Failure("internal.bug", "a config was refused without a problem", { cause });
  const more = problems.length === 1 ? "" : ` (and ${problems.length - 1} more)`;
  const key = first.path === "" ? "" : `${first.path}: `;
  return new Failure("config.invalid", `${first.file}:${first.line}:${first.column}: ${key}${first.message}${more}`, {
    cause,
    details: { problems },
  });
}
