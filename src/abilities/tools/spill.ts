import { sha256 } from "../../kernel/canonical-json.ts";
import { isFailure } from "../../kernel/failure.ts";
import type { Workspace } from "../../records/workspaces/workspace.ts";
import type { Workspaces } from "../../records/workspaces/workspaces.ts";
import { workspaceOf } from "./files/workspace-of.ts";
import type { Spill } from "./output.ts";

const FOLDER = ".guildhall/outputs";
const KEPT = 100;
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Longer lines could not be read in parts. */
const MAX_LINE = 2_000;

/** Puts an output that is too long into the agent's workspace, where it can be read in parts. Null where it has none. */
export function createSpill(workspaces: Workspaces): Spill {
  return async (context, text) => {
    const path = `${FOLDER}/${nameOf(context.key)}.txt`;
    try {
      const workspace = workspaceOf(workspaces, context);
      await workspace.write(path, folded(text.slice(0, MAX_CHARACTERS)));
      await sweep(workspace, FOLDER);
    } catch (error) {
      // Without a workspace, or without room in it, the call has still been made.
      if (isFailure(error)) return null;
      throw error;
    }
    return `all of it is in ${path}: read it with file_read, in parts by offset and limit, or look through it with file_search`;
  };
}

function nameOf(key: string): string {
  return /^[A-Za-z0-9._-]{1,100}$/.test(key) && !key.startsWith(".") ? key : sha256(key).slice(0, 32);
}

function folded(text: string): string {
  const lines = text.split("\n");
  if (lines.every(({ length }) => length <= MAX_LINE)) return text;
  return lines.map((line) => line.replaceAll(new RegExp(`.{${MAX_LINE}}(?=.)`, "gs"), "$&\n")).join("\n");
}

/** Keeps the newest. What cannot be removed does no harm. */
export async function sweep(workspace: Workspace, folder: string, kept = KEPT): Promise<void> {
  try {
    const { entries } = await workspace.list(folder);
    if (entries.length <= kept) return;
    const files = await Promise.all(
      entries.map(async ({ name }) => ({ name, at: (await workspace.stat(`${folder}/${name}`).catch(() => undefined))?.modifiedAt ?? 0 })),
    );
    files.sort((a, b) => b.at - a.at || (a.name < b.name ? 1 : -1));
    for (const { name } of files.slice(kept)) await workspace.remove(`${folder}/${name}`).catch(() => {});
  } catch (error) {
    if (!isFailure(error)) throw error;
  }
}
