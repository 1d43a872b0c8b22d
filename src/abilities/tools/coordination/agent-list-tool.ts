import { z } from "zod";
import { peerIn } from "../../../contract/a2a.ts";
import type { Agent } from "../../../records/agents/agent.ts";
import type { AgentRegistry } from "../../../records/agents/registry.ts";
import { defineTool, type Tool } from "../tool.ts";

/** Whom an agent knows of: itself, whom it may look at, and whom it may delegate to. Of nobody else it is told, not even the name. */
export function agentListTool(agents: Pick<AgentRegistry, "current">): Tool {
  return defineTool({
    name: "agent_list",
    description:
      "The agents you know of: yourself, those whose work you may look at, and those you may give work to with agent_delegate (`delegate`). The names to write mail to.",
    parameters: z.strictObject({}),
    effect: "pure",
    run: (_, { caller }) => {
      const { agents: now } = agents.current;
      const self = now.get(caller.name);
      return { output: { agents: self ? knownTo(self, [...now.values()]) : [] } };
    },
  });
}

function knownTo(self: Agent, all: readonly Agent[]) {
  const delegates = new Set(self.subagents.agents.map(({ id }) => id));
  const elsewhere = [...delegates].filter((id) => peerIn(id) !== null).map((id) => ({ id, delegate: true, elsewhere: true }));
  const seen = ({ id }: Agent): boolean => self.sees.includes("*") || self.sees.includes(id);
  const here = all
    .filter((agent) => agent.id === self.id || delegates.has(agent.id) || seen(agent))
    .map((agent) => ({
      id: agent.id,
      state: agent.state,
      roles: agent.roles,
      ...(agent.id === self.id ? { you: true } : {}),
      ...(delegates.has(agent.id) ? { delegate: true } : {}),
    }));
  return [...here, ...elsewhere];
}
