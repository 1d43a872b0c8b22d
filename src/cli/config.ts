import { bold, type GlobalOptions, harmless, print } from "./terminal.ts";

const WRONG_CONFIG = 2;

interface ShownProblem {
  readonly severity: "error" | "warning";
  readonly code: string;
  readonly path: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly fix: string;
  readonly source: { readonly text: string; readonly caret: number } | null;
}

export async function check(file: string | undefined, options: GlobalOptions): Promise<number> {
  const { checkConfig } = await import("../daemon/local-config.ts");
  const { ok, problems, exists, ...checked } = checkConfig(options, file);
  if (options.json) print(JSON.stringify({ ok, file: checked.file, problems: problems.map(({ source: _source, ...problem }) => problem) }));
  else {
    for (const problem of problems) print(`${harmless(inBlock(problem))}\n`);
    print(harmless(summary(problems, checked.file, exists)));
  }
  return ok ? 0 : WRONG_CONFIG;
}

export async function explainKey(key: string, options: GlobalOptions): Promise<number> {
  const explained = (await import("../daemon/local-explain.ts")).explainKey(options, key);
  if (options.json) {
    print(JSON.stringify(explained));
    return 0;
  }
  const { value, because, means, readBy } = explained;
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  print(
    harmless(
      [`${bold(key)} = ${text}`, `  ${because}`, `  read by ${readBy.join(", ")}`, ...(means === "" ? [] : [`  ${means}`])].join("\n"),
    ),
  );
  return 0;
}

export async function schema(): Promise<number> {
  const { configSchemaAsJson } = await import("../daemon/local-config.ts");
  print(JSON.stringify(configSchemaAsJson(), null, 2));
  return 0;
}

export function inBlock({ severity, code, path, file, line, column, message, fix, source }: ShownProblem): string {
  const margin = " ".repeat(String(line).length);
  const shown =
    source === null ? [] : [`  ${line} | ${source.text}`, `  ${margin} | ${source.text.slice(0, source.caret).replace(/[^\t]/g, " ")}^`];
  return [
    `${bold(severity)}: ${path === "" ? "" : `${path}: `}${message} [${code}]`,
    `  at ${file}:${line}:${column}`,
    ...shown,
    ...(fix === "" ? [] : [`  fix: ${fix}`]),
  ].join("\n");
}

export function summary(problems: readonly ShownProblem[], file: string, exists: boolean): string {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const warnings = problems.length - errors;
  if (problems.length === 0) return exists ? `${file}: no problems` : `${file} does not exist: everything is as by default`;
  const count = (number: number, word: string): string => `${number} ${word}${number === 1 ? "" : "s"}`;
  return `${file}: ${count(errors, "error")}, ${count(warnings, "warning")}`;
}
