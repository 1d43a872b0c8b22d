import { isFailure } from "../../kernel/failure.ts";
import type { Workspaces } from "../../records/workspaces/workspaces.ts";
import type { PartSource } from "../open-turn.ts";

const NAMES = ["AGENTS.md", "CLAUDE.md", "NOTES.md"];
const BYTES = 32_768;

/** The first of these in the workspace. Whoever may write there has written it, the agent itself included. */
export function workspaceNotes(workspaces: () => Promise<Pick<Workspaces, "workspace">>): PartSource {
  return async ({ agent, run, revision }) => {
    try {
      const workspace = (await workspaces()).workspace(agent, run.address, { configFile: revision.settings.configFile });
      for (const name of NAMES) {
        const text = await workspace.read(name, { limit: BYTES }).then(wordsOf, notThere);
        if (text !== null) return { name: "workspace notes", text: `Notes in your workspace (${name}):\n${text}` };
      }
    } catch (error) {
      // Without files there are no notes; everything else goes on.
      if (!isFailure(error)) throw error;
    }
    return null;
  };
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
