import type { Workspace } from "../../../records/workspaces/workspace.ts";
import type { Workspaces } from "../../../records/workspaces/workspaces.ts";
import type { CallContext } from "../tool.ts";

/** The files of the agent that calls, in the place where it is spoken to. */
export function workspaceOf(workspaces: Workspaces, { agent, run, revision }: Pick<CallContext, "agent" | "run" | "revision">): Workspace {
  return workspaces.workspace(agent, run.address, { configFile: revision.settings.configFile });
}
