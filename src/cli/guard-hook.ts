/** What an agent's program tells its hooks before it writes: which files, in which session, from which folder. */
export interface HookCall {
  readonly session: string | undefined;
  readonly folder: string | undefined;
  readonly files: readonly string[];
  /** Cursor reads the verdict from stdout too. */
  readonly wantsJson: boolean;
}

const PATH_FIELDS = ["file_path", "filePath", "notebook_path", "absolute_path", "path", "target_file"];
const PATCH_FIELDS = ["command", "patch", "patchText", "input", "diff"];
const PATCHED = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm;

/**
 * Reads the JSON that Claude Code, Codex, Gemini CLI, Cursor and our plug-in for opencode send. They name the same few things in
 * different ways; whatever names no file is none of our business. Undefined: no such JSON.
 */
export function parseHook(text: string): HookCall | undefined {
  const call = recordOf(text);
  if (!call) return undefined;
  const roots = Array.isArray(call.workspace_roots) ? call.workspace_roots : [];
  return {
    session: firstText(call.session_id, call.conversation_id, call.sessionID, call.sessionId),
    folder: firstText(call.cwd, call.directory, roots[0]),
    files: filesOf(call.tool_input ?? call.args ?? call),
    wantsJson: typeof call.conversation_id === "string",
  };
}

function filesOf(input: unknown): string[] {
  if (typeof input === "string") return recordOf(input) ? filesOf(recordOf(input)) : patched(input);
  if (input === null || typeof input !== "object") return [];
  const fields = input as Record<string, unknown>;
  const named = PATH_FIELDS.map((name) => fields[name]).filter((value): value is string => typeof value === "string" && value !== "");
  const edits = Array.isArray(fields.edits) ? fields.edits.flatMap((edit) => (typeof edit === "object" ? filesOf(edit) : [])) : [];
  const patches = PATCH_FIELDS.flatMap((name) => patched(fields[name]));
  return [...new Set([...named, ...edits, ...patches])];
}

/** The form in which Codex writes files. */
function patched(text: unknown): string[] {
  if (typeof text !== "string") return Array.isArray(text) ? text.flatMap(patched) : [];
  return [...text.matchAll(PATCHED)].map(([, file]) => (file as string).trim());
}

function firstText(...values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === "string" && value !== "");
}

function recordOf(text: unknown): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(String(text));
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
