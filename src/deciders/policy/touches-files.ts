import { TOOL_GROUPS } from "../../contract/tools.ts";
import { ANY_ARGUMENTS, verdictOf } from "./may-call.ts";
import type { Policy } from "./policy.ts";

const FILE_TOOLS: readonly string[] = [...TOOL_GROUPS.fs, ...TOOL_GROUPS.runtime];
/** Sends files of the workspace, where channels bring some even to an agent that can write none. */
const SENDS_FILES = "message_send";

/**
 * Whether what this agent does depends on files of the machine it is done on: then two machines must not take turns at it. Whoever may act
 * for it has no more rights than it has itself, so that its own are all that count. Memory, pools, mail and tasks are in the store; skills,
 * SOUL.md and MEMORY.md are people's, who keep them the same everywhere, as they do with the config.
 */
export function touchesFiles(current: Policy, agent: string): boolean {
  const { agents, channels } = current.source.config;
  const own = Object.hasOwn(agents, agent) ? agents[agent] : undefined;
  if (!own) return false;
  // A program starts in the agent's folder with its turn, whichever of its tools may be called.
  if (Object.values(own.mcp).some((server) => "command" in server)) return true;
  const grant = current.grantOf(agent);
  const may = (tool: string): boolean => verdictOf({ grant, current, tool, args: ANY_ARGUMENTS }) !== "deny";
  return FILE_TOOLS.some(may) || (Object.keys(channels).length > 0 && may(SENDS_FILES));
}
