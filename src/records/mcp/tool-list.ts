import { canonicalJson, sha256 } from "../../kernel/canonical-json.ts";

/** A tool as its server tells of it, as far as anybody acts on it. */
export interface ListedTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>> | undefined;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
}

export interface ToolList {
  /** In the order of their names. */
  readonly tools: readonly ListedTool[];
  /** Canonical JSON of the tools; `hash` is of it. */
  readonly text: string;
  readonly hash: string;
}

const PARTS = ["title", "description", "inputSchema", "outputSchema", "annotations"] as const;

/** The same list for the same tools, in whatever order they come and whatever else is said of them. */
export function toolListOf(tools: readonly ListedTool[]): ToolList {
  const kept = tools
    .map(({ name, title, description, inputSchema, outputSchema, annotations }) => ({
      name,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      inputSchema,
      ...(outputSchema === undefined ? {} : { outputSchema }),
      ...(annotations === undefined ? {} : { annotations }),
    }))
    .sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
  const text = canonicalJson(kept);
  return { tools: kept, text, hash: sha256(text) };
}

/** What tells one tool from another of the same name. */
export function toolHash(tool: ListedTool): string {
  return toolListOf([tool]).hash;
}

export interface ToolListChanges {
  readonly added: readonly { readonly name: string; readonly description: string }[];
  readonly removed: readonly string[];
  /** `parts`: of what is said about it; `description`: what is said now. */
  readonly changed: readonly { readonly name: string; readonly parts: readonly string[]; readonly description: string }[];
  /** Changes beyond those that are listed. */
  readonly more: number;
}

const LISTED_AT_MOST = 50;
const WORDS_AT_MOST = 500;

/** For a person who has to judge it: bounded, and the same whenever it is asked for. */
export function changesBetween(before: readonly ListedTool[], after: readonly ListedTool[]): ToolListChanges {
  const known = new Map(before.map((tool) => [tool.name, tool]));
  const now = new Set(after.map(({ name }) => name));
  const words = (tool: ListedTool): string => (tool.description ?? "").slice(0, WORDS_AT_MOST);
  const added = after.filter(({ name }) => !known.has(name)).map((tool) => ({ name: tool.name, description: words(tool) }));
  const removed = before.map(({ name }) => name).filter((name) => !now.has(name));
  const changed = after.flatMap((tool) => {
    const old = known.get(tool.name);
    const parts = old ? PARTS.filter((part) => canonicalJson(old[part] ?? null) !== canonicalJson(tool[part] ?? null)) : [];
    return parts.length === 0 ? [] : [{ name: tool.name, parts, description: words(tool) }];
  });
  const listed = [added, removed, changed].map((list) => Math.min(list.length, LISTED_AT_MOST));
  return {
    added: added.slice(0, LISTED_AT_MOST),
    removed: removed.slice(0, LISTED_AT_MOST),
    changed: changed.slice(0, LISTED_AT_MOST),
    more: added.length + removed.length + changed.length - listed.reduce((sum, count) => sum + count, 0),
  };
}
