import type { Clock } from "../../kernel/clock.ts";
import { isFailure } from "../../kernel/failure.ts";
import type { Workspace } from "../../records/workspaces/workspace.ts";
import { Workspaces } from "../../records/workspaces/workspaces.ts";
import type { PartSource } from "../open-turn.ts";

const NAMES = ["AGENTS.md", "CLAUDE.md", "NOTES.md"];
const BYTES = 32_768;
const REMEMBERED = 2_000;
/** A folder that was changed this recently may be changed again without a new time. */
const SETTLED_MS = 2_000;

/** The first of these in the workspace. Whoever may write there has written it, the agent itself included. */
export function workspaceNotes(workspaces: () => Promise<Pick<Workspaces, "workspace">>, clock: Clock): PartSource {
  // Where nothing was found, by the time of the folder's last change: looking for three files takes 0.7 ms, looking at the folder 0.2.
  const without = new Map<string, number>();
  return async ({ agent, run, revision }) => {
    try {
      const workspace = (await workspaces()).workspace(agent, run.address, { configFile: revision.settings.configFile });
      const place = Workspaces.folderOf(agent, run.address).join("/");
      const { modifiedAt } = await workspace.stat(".");
      if (without.get(place) === modifiedAt) return null;
      const found = await firstOf(workspace);
      if (found) return { name: "workspace notes", text: found };
      if (without.size >= REMEMBERED) without.clear();
      if (clock.now() - modifiedAt > SETTLED_MS) without.set(place, modifiedAt);
    } catch (error) {
      // Without files there are no notes; everything else goes on.
      if (!isFailure(error)) throw error;
    }
    return null;
  };
}

async function firstOf(workspace: Workspace): Promise<string | null> {
  for (const name of NAMES) {
    const text = await workspace.read(name, { limit: BYTES }).then(wordsOf, notThere);
    if (text !== null) return `Notes in your workspace (${name}):\n${text}`;
  }
  return null;
}

function wordsOf({ bytes, more }: { readonly bytes: Uint8Array; readonly more: boolean }): string | null {
  const text = Buffer.from(bytes).toString("utf8").replaceAll("\0", "").toWellFormed().trim();
  return text === "" ? null : `${text}${more ? "\n[The file is longer; only its beginning is told.]" : ""}`;
}

/** Also what is a link or a folder. */
function notThere(error: unknown): null {
  if (isFailure(error)) return null;
  throw error;
}
