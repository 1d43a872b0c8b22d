import { z } from "zod";
import { Failure, isFailure } from "../../../kernel/failure.ts";
import { Turnstile } from "../../../records/workspaces/turnstile.ts";
import type { Onward } from "../../../records/workspaces/walk.ts";
import type { Visited } from "../../../records/workspaces/workspace.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import { defineTool, type Tool, type ToolOutcome } from "../tool.ts";
import { type Found, SearchAside, type SearchedFile, type SearchOrder } from "./search-aside.ts";
import { holdsSecret, isSecretName } from "./secret-files.ts";
import { workspaceOf } from "./workspace-of.ts";

/** Searches at once: each has a thread. */
const AT_ONCE = 2;
const TIME_MS = 3_000;
/** For finding and reading the files; what was found until then is told. */
const READING_MS = 15_000;
const MAX_HITS = 200;
const MAX_FILE_BYTES = 2 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;
const BATCH_BYTES = 4 * 1024 * 1024;
const BATCH_NAMES = 5_000;
/** Not looked into unless the path names them: they hold copies. */
const LEFT_OUT = ["node_modules", ".git", ".guildhall"];

const parameters = z.strictObject({
  pattern: z
    .string()
    .min(1)
    .max(500)
    .describe("A regular expression for lines of files (TODO|FIXME), or a pattern of file names (*.md, src/**/*.ts)."),
  path: z.string().min(1).max(4_096).default(".").describe("The folder or file to look in."),
});

export function fileSearchTool(workspaces: Workspaces, readingMs = READING_MS): Tool {
  const turnstile = new Turnstile(AT_ONCE);
  return defineTool({
    name: "file_search",
    description:
      "Find lines in files of the workspace by a regular expression, or files by a pattern of their names such as *.md or src/**/*.ts. node_modules, .git and .guildhall are left out unless path names them.",
    parameters,
    effect: "pure",
    run: async ({ pattern, path }, context) =>
      turnstile.pass(async () => {
        const until = performance.now() + readingMs;
        const goesOn = (): boolean => !context.signal.aborted && performance.now() < until;
        const kind = kindOf(pattern);
        const search = new SearchAside(TIME_MS);
        const hits: Found[] = [];
        let isWhole = true;
        const look = async (files: readonly SearchedFile[]): Promise<boolean> => {
          const order: SearchOrder = { kind, pattern, files, limit: MAX_HITS - hits.length };
          hits.push(...(await search.look(order, context.signal)));
          return hits.length < MAX_HITS;
        };
        try {
          isWhole = await inBatches(workspaceOf(workspaces, context), path, kind, look, goesOn);
        } finally {
          await search.close();
        }
        context.signal.throwIfAborted();
        return outcomeOf(pattern, kind, hits.slice(0, MAX_HITS), isWhole);
      }),
  });
}

/**
 * A pattern of names: it begins with *, or has a * in a path, and is no regular expression that somebody could mean (`.*`, brackets,
 * anchors). What is neither is refused.
 */
export function kindOf(pattern: string): SearchOrder["kind"] {
  const couldBeNames = /^[\p{L}\p{N}_\-./*?{},@+ ]+$/u.test(pattern) && pattern.includes("*");
  const problem = expressionProblem(pattern);
  if (couldBeNames && (problem !== null || pattern.startsWith("*") || (pattern.includes("/") && !pattern.includes(".*")))) return "names";
  if (problem === null) return "contents";
  throw new Failure("tool.bad_arguments", `the pattern is neither a regular expression (${problem}) nor one of names`);
}

function expressionProblem(pattern: string): string | null {
  try {
    new RegExp(pattern, "u");
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** False: not everything was looked at. */
async function inBatches(
  workspace: ReturnType<typeof workspaceOf>,
  path: string,
  kind: SearchOrder["kind"],
  look: (files: readonly SearchedFile[]) => Promise<boolean>,
  goesOn: () => boolean,
): Promise<boolean> {
  let batch: SearchedFile[] = [];
  let batchBytes = 0;
  let allBytes = 0;
  const flush = async (): Promise<boolean> => {
    const files = batch;
    batch = [];
    batchBytes = 0;
    return files.length === 0 || (await look(files));
  };
  const visit = async (file: Pick<Visited, "path" | "kind" | "read">): Promise<Onward> => {
    if (!goesOn()) return false;
    if (isLeftOut(file.path, path)) return "past";
    if (file.kind !== "file") return true;
    const text = kind === "names" ? "" : await readable(file);
    if (text === undefined) return true;
    batch.push({ path: file.path, text });
    batchBytes += text.length;
    allBytes += text.length;
    if (allBytes > MAX_BYTES) return false;
    return batchBytes < BATCH_BYTES && batch.length < BATCH_NAMES ? true : flush();
  };
  const { kind: what } = await workspace.stat(path);
  if (what === "file") {
    await visit({ path, kind: "file", read: (part) => workspace.read(path, part) });
    return flush();
  }
  const { more } = await workspace.walk(path, visit);
  return (await flush()) && !more;
}

function isLeftOut(file: string, asked: string): boolean {
  const parts = file.split("/");
  return LEFT_OUT.some((name) => parts.includes(name) && !asked.split("/").includes(name));
}

/** Undefined: no text, too large, or not to be read; a search goes on without it. */
async function readable({ read }: Pick<Visited, "read">): Promise<string | undefined> {
  try {
    const { bytes, more } = await read({ limit: MAX_FILE_BYTES });
    return more || bytes.subarray(0, 8_192).includes(0) ? undefined : Buffer.from(bytes).toString("utf8");
  } catch (error) {
    if (isFailure(error)) return undefined;
    throw error;
  }
}

function outcomeOf(pattern: string, kind: SearchOrder["kind"], hits: readonly Found[], isWhole: boolean): ToolOutcome {
  const lines = hits.map(({ path, line, text }) => (kind === "names" ? path : `${path}:${line}: ${text}`));
  const what = kind === "names" ? `no file has a name like ${pattern}` : `no line matches ${pattern}`;
  const note = isWhole
    ? []
    : [hits.length >= MAX_HITS ? `[the first ${MAX_HITS}; there may be more]` : "[not everything was looked at: name a smaller folder]"];
  const seesSecret = kind === "contents" && hits.some(({ path, text }) => isSecretName(path) || holdsSecret(text));
  return {
    output: [...(lines.length === 0 ? [what] : lines), ...note].join("\n"),
    ...(seesSecret ? { labels: ["secret"] as const } : {}),
    told: { kind, found: hits.length },
  };
}
