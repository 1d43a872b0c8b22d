import { isAbsolute, normalize, relative } from "node:path/posix";
import { SEEN_SHARED, SEEN_WORKSPACE } from "../../contract/tools.ts";

const MAX_DEPTH = 100;
const MAX_VALUES = 100_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;

/** What is wrong with arguments, whatever the tool: they must be plain JSON of a size that can be judged. Null: nothing. */
export function argumentProblem(args: unknown): string | null {
  if (!isPlainObject(args)) return "the arguments are not an object";
  let values = 0;
  let characters = 0;
  // A list instead of recursion: depth is what is being measured, and it comes from outside.
  const open: { readonly value: object; readonly depth: number }[] = [{ value: args, depth: 1 }];
  for (let next = open.pop(); next; next = open.pop()) {
    if (next.depth > MAX_DEPTH) return `the arguments are nested more than ${MAX_DEPTH} deep`;
    const isList = Array.isArray(next.value);
    for (const key of Object.keys(next.value)) {
      if (key === "__proto__") return "the arguments have a key __proto__";
      const value = (next.value as Record<string, unknown>)[key];
      if (!isList) characters += key.length;
      if (typeof value === "string") characters += value.length;
      else if (typeof value === "object" && value !== null) {
        if (!Array.isArray(value) && !isPlainObject(value)) return `the argument ${JSON.stringify(key)} is not plain JSON`;
        open.push({ value, depth: next.depth + 1 });
      } else if (value !== null && value !== undefined && typeof value !== "number" && typeof value !== "boolean")
        return `the argument ${JSON.stringify(key)} is not plain JSON`;
      if (++values > MAX_VALUES || characters > MAX_CHARACTERS) return "the arguments are too large";
    }
  }
  return null;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * What is wrong with the path of a file tool as it is written. Only a first look, so that the refusal can say what to write: links are seen
 * by the workspace's jail, which is the boundary.
 */
export function pathProblem(path: unknown, workspace: string, shared: () => readonly string[]): string | null {
  if (path === undefined) return null;
  if (typeof path !== "string") return "`path` is not text";
  if (path.includes("\0")) return "`path` holds a NUL";
  const written = path.replaceAll("\\", "/");
  const isInside = isAbsolute(written)
    ? [SEEN_WORKSPACE, SEEN_SHARED, workspace, ...shared()].some((folder) => !leadsOut(relative(folder, written)))
    : !leadsOut(normalize(written));
  return isInside ? null : "`path` leads out of the workspace";
}

function leadsOut(way: string): boolean {
  return way === ".." || way.startsWith("../");
}
