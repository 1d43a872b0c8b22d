import { peerIn } from "../../contract/a2a.ts";
import { agentId } from "../../contract/config.ts";
import { TOOL_GROUPS } from "../../contract/tools.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { argumentProblem, pathProblem } from "./argument-problem.ts";
import type { Policy } from "./policy.ts";
import { serverOf, shown } from "./tool-name.ts";

/** A reason to deny that is no rule of a layer: a name, a state, arguments. */
export interface Refusal {
  readonly source: string;
  readonly rule: string;
  readonly because: string;
  readonly fix: string | null;
  readonly line: number | null;
}

const FILE_TOOLS: ReadonlySet<string> = new Set(TOOL_GROUPS.fs);

/** Null: the agent may act. */
export function stateRefusal(agent: string, current: Policy): Refusal | null {
  const standstill = current.standstillOf(agent);
  return standstill && { source: `agent ${agent}`, rule: "state", ...standstill };
}

/** A server belongs to the agents that have it: who acts within another's rights has none of what that one could not call itself. */
export function serverRefusal(agent: string, actor: string, tool: string, current: Policy): Refusal | null {
  if (current.hasTool(agent, tool)) return null;
  const path = `agents.${agent}.mcp`;
  const because = `agent ${agent} has no MCP server ${serverOf(tool)}, and ${actor} acts within its rights`;
  const fix = `write rights: own where agents.${agent}.subagents.agents names the agent it delegates to, and start a new run`;
  return { source: `agent ${agent}`, rule: path, because, fix, line: null };
}

/** What is wrong with the arguments of a call that the rules would allow; null: nothing that can be seen without doing it. */
export function argumentRefusal(
  agent: string,
  tool: string,
  args: unknown,
  workspace: string | undefined,
  current: Policy,
): Refusal | null {
  const refuse = (rule: string, because: string, fix: string | null): Refusal => ({
    source: "the arguments",
    rule,
    because,
    fix,
    line: null,
  });
  const problem = argumentProblem(args);
  if (problem !== null) return refuse("shape", `${problem}; ${tool} is not called with them`, null);
  const given = args as Readonly<Record<string, unknown>>;
  if (FILE_TOOLS.has(tool)) {
    const wrong = pathProblem(given.path, workspace ?? current.workspaceOf(agent), () => current.sharedFoldersOf(agent));
    if (wrong !== null) return refuse("path", wrong, "name a path inside the workspace");
  }
  if (tool !== "agent_delegate") return null;
  if (typeof given.agent !== "string") return refuse("agent", "`agent` must name an agent", null);
  return delegateRefusal(agent, given.agent, current);
}

/** The same answer for an agent that is not listed and for one that does not exist: a model learns no names by asking. */
function delegateRefusal(from: string, to: string, current: Policy): Refusal | null {
  const delegates = current.delegatesOf(from);
  // One that pauses takes up later what it is asked; how one elsewhere stands is that house's to say.
  if (delegates.includes(to)) return peerIn(to) !== null || current.isPaused(to) ? null : stateRefusal(to, current);
  const path = `agents.${from}.subagents.agents`;
  const line = current.lineOf("agents", from, "subagents", "agents");
  const couldBe = agentId.safeParse(to).success;
  const because = `${path} does not name ${couldBe ? to : shown(to)}${didYouMean(to, delegates)}${current.at(line)}`;
  const change = delegates.length === 0 ? `write ${path}: [${to}]` : `add ${to} to ${path}`;
  const fix = couldBe ? `${change}${line === null ? "" : `, ${current.file}:${line}`}` : null;
  return { source: "the delegates", rule: path, because, fix, line };
}
