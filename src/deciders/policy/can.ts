import type { CanAnswer } from "../../contract/policy.ts";
import { Failure } from "../../kernel/failure.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { ANY_ARGUMENTS, explainCall } from "./may-call.ts";
import type { Policy } from "./policy.ts";
import { shown } from "./tool-name.ts";

/** Whether an agent may call a tool by the config alone, as the command and the API answer it. `args` is JSON; without it: at all. */
export function can(current: Policy, agent: string, tool: string, args?: string): CanAnswer {
  const { config, quarantined } = current.source;
  if (!Object.hasOwn(config.agents, agent) && !quarantined.has(agent)) {
    const names = [...Object.keys(config.agents), ...quarantined.keys()];
    throw new Failure("agent.unknown", `there is no agent ${shown(agent)}${didYouMean(agent, names)}`);
  }
  const call = { grant: current.grantOf(agent), current, tool, args: args === undefined ? ANY_ARGUMENTS : parsed(args) };
  const { verdict, because, fix, trace } = explainCall(call);
  return { agent, tool, verdict, because, fix, trace: [...trace] };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Failure("request.malformed", 'args: expected JSON, for example {"path":"notes.md"}', { cause: error });
  }
}
