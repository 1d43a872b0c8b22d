import { TOOL_GROUPS } from "../../contract/tools.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { argumentProblem, pathProblem } from "./argument-problem.ts";
import type { Policy } from "./policy.ts";
import { shown } from "./tool-name.ts";

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
    const wrong = pathProblem(given.path, workspace ?? current.workspaceOf(agent));
    if (wrong !== null) return refuse("path", `${wrong}; the workspace's jail would refuse it too`, "name a path inside the workspace");
  }
  if (tool !== "agent_delegate") return null;
  if (typeof given.agent !== "string") return refuse("agent", "`agent` must name an agent", null);
  return delegateRefusal(agent, given.agent, current);
}

/** The same answer for an agent that is not listed and for one that does not exist: a model learns no names by asking. */
function delegateRefusal(from: string, to: string, current: Policy): Refusal | null {
  if (current.rightsOn(from, to) !== null) return stateRefusal(to, current);
  const path = `agents.${from}.subagents.agents`;
  const delegates = current.delegatesOf(from);
  const line = current.lineOf("agents", from, "subagents", "agents");
  const name = /^[a-z0-9][a-z0-9_-]*$/.test(to) ? to : shown(to);
  const change = delegates.length === 0 ? `write subagents: { agents: [${name}] } in agents.${from}` : `add ${name} to ${path}`;
  const because = `${path} does not name ${name}${didYouMean(to, delegates)}${current.at(line)}`;
  return { source: "the delegates", rule: path, because, fix: `${change}${line === null ? "" : `, ${current.file}:${line}`}`, line };
}
