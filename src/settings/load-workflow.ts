import { isUtf8 } from "node:buffer";
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { type Workflow, type WorkflowProblem, workflow as workflowSchema } from "../contract/workflows.ts";
import { Failure, isFailure } from "../kernel/failure.ts";
import { didYouMean } from "../kernel/nearest.ts";
import { type ConfigProblem, errorAt, type Finding, type Origin } from "./config-problem.ts";
import { parseYamlAside, WORTH_A_PROCESS } from "./parse-aside.ts";
import { schemaFindings } from "./schema-findings.ts";
import { valueAt } from "./value-at.ts";
import { readYaml, type YamlSource, yamlSource } from "./yaml-source.ts";

export const MAX_WORKFLOW_BYTES = 1024 * 1024;
const EXTENSIONS = [".yaml", ".yml", ".json"];
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** A problem with its place; `line` and `column` are null for a workflow that no file holds. */
export interface PlacedProblem extends WorkflowProblem {
  readonly file: string | null;
  readonly column: number | null;
}

/** A workflow as far as the schema can tell; what stands between its steps is for `checkWorkflow` (deciders/planning). */
export interface ReadWorkflow {
  /** Null: it came as a value. */
  readonly file: string | null;
  /** Null: it does not fit the schema, or is no YAML at all. */
  readonly workflow: Workflow | null;
  /** As it was written, before defaults. */
  readonly written: unknown;
  readonly problems: readonly PlacedProblem[];
  place(finding: Finding): PlacedProblem;
}

/** The file of a name; only of this folder, whatever the name says. Throws `workflow.unknown`. */
export function namedWorkflow(home: string, name: string): string {
  const folder = workflowsFolder(home);
  const file = NAME.test(name) ? EXTENSIONS.map((extension) => join(folder, `${name}${extension}`)).find(isOwnFile) : undefined;
  if (file !== undefined) return file;
  const known = workflowNames(home).map((each) => each.name);
  throw new Failure(
    "workflow.unknown",
    `there is no workflow ${JSON.stringify(name.slice(0, 100))} in ${folder}${didYouMean(name, known)}`,
  );
}

/** Every workflow in the folder, by name; of two files with one name, the one that the name stands for. */
export function workflowNames(home: string): { readonly name: string; readonly file: string }[] {
  const folder = workflowsFolder(home);
  const byName = new Map<string, string>();
  for (const extension of EXTENSIONS)
    for (const entry of entriesOf(folder)) {
      const name = entry.slice(0, -extension.length);
      if (extname(entry) === extension && NAME.test(name) && !byName.has(name) && isOwnFile(join(folder, entry)))
        byName.set(name, join(folder, entry));
    }
  return [...byName].map(([name, file]) => ({ name, file })).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

export function workflowsFolder(home: string): string {
  return join(home, "workflows");
}

/** YAML or JSON, at most 1 MiB. Throws `workflow.unknown` where there is no file; everything else is a problem with a place. */
export async function readWorkflow(path: string): Promise<ReadWorkflow> {
  const file = resolve(path);
  const bytes = bytesOf(file);
  if ("problem" in bytes) return unreadable(file, [bytes.problem]);
  const text = bytes.content.toString("utf8");
  try {
    // A daemon has other things to do than to parse a large file.
    const source =
      text.length < WORTH_A_PROCESS ? readYaml(text, file, null) : yamlSource(await parseYamlAside({ text, file, names: null }));
    return readFrom(source, file);
  } catch (error) {
    const problems = isFailure(error, "config.invalid") ? (error.details.problems as readonly ConfigProblem[] | undefined) : undefined;
    if (!problems) throw error;
    return unreadable(file, problems);
  }
}

/** A workflow that a program hands in: the same rules, and nothing has a line. */
export function workflowOfValue(value: unknown): ReadWorkflow {
  const nowhere = { line: 1, column: 1 };
  return readFrom(
    {
      value,
      repeated: [],
      findings: [],
      substitutionAt: () => undefined,
      substituted: () => [],
      spellingAt: () => undefined,
      originOf: () => nowhere,
      originOfKey: () => nowhere,
      isWritten: (path) => valueAt(value, path) !== undefined,
    },
    null,
  );
}

function readFrom(source: YamlSource, file: string | null): ReadWorkflow {
  const place = ({ severity, code, path, at, message, fix }: Finding): PlacedProblem => {
    const origin = typeof at === "object" ? at : at === "key" ? source.originOfKey(path) : source.originOf(path);
    return { severity, code: ownCode(code), path: [...path], ...whereIn(file, origin), message, fix: fix === "" ? null : fix };
  };
  const parsed = workflowSchema.safeParse(source.value ?? {});
  const findings = [...source.findings, ...schemaFindings(parsed.error?.issues ?? [], { ...source, schema: workflowSchema })];
  const workflow = parsed.success && findings.length === 0 ? parsed.data : null;
  return { file, workflow, written: source.value, problems: findings.map(place), place };
}

function whereIn(file: string | null, { line, column }: Origin): Pick<PlacedProblem, "file" | "line" | "column"> {
  return file === null ? { file, line: null, column: null } : { file, line, column };
}

/** Codes of the shared reader speak of the config. */
function ownCode(code: string): string {
  return code.replace(/^config\./, "workflow.");
}

function unreadable(file: string, problems: readonly ConfigProblem[]): ReadWorkflow {
  const placed = problems.map(({ severity, code, line, column, path, message, fix }) => ({
    severity,
    code: ownCode(code),
    path: path === "" ? [] : path.split("."),
    file,
    line,
    column,
    message: message.replace("a config is", "a workflow is"),
    fix,
  }));
  const nowhere = { line: 1, column: 1 };
  const place = ({ severity, code, path, message, fix }: Finding): PlacedProblem => ({
    severity,
    code: ownCode(code),
    path: [...path],
    ...whereIn(file, nowhere),
    message,
    fix,
  });
  return { file, workflow: null, written: undefined, problems: placed, place };
}

function bytesOf(file: string): { readonly content: Buffer } | { readonly problem: ConfigProblem } {
  const problem = (code: string, message: string, fix: string) => ({
    problem: { ...errorAt([], code, message, fix), path: "", file, line: 1, column: 1 },
  });
  try {
    const found = statSync(file);
    if (!found.isFile()) return problem("workflow.unreadable", "this is no file", "Name a file that holds a workflow.");
    if (found.size > MAX_WORKFLOW_BYTES)
      return problem("workflow.too_large", `the file is larger than ${MAX_WORKFLOW_BYTES / 1024} KiB`, "Hand long texts in as input.");
    const content = readFileSync(file);
    if (!isUtf8(content)) return problem("workflow.malformed", "the file is not written in UTF-8", "Save it as UTF-8 in the editor.");
    return { content };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") throw new Failure("workflow.unknown", `${file} does not exist`, { cause: error });
    return problem("workflow.unreadable", `the file cannot be read (${code})`, "Make it a file that this user may read.");
  }
}

/** A link that leads out of the folder is none of its files. */
function isOwnFile(file: string): boolean {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return false;
  return dirname(realpathSync(file)) === realpathSync(dirname(file));
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
