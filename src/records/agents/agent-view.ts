import type { AgentDetails, AgentView } from "../../contract/agents.ts";
import type { Reads } from "../../store/engine.ts";
import type { Agent } from "./agent.ts";
import type { Revision } from "./revision.ts";

type Counts = ReadonlyMap<string, { readonly running: number; readonly waiting: number }>;
/** Why an agent cannot answer, or null. */
export type ProblemOf = (agent: Agent) => string | null;
const NONE = { running: 0, waiting: 0 };

/** How many turns of each agent run, and how many wait for their time or for the agent. */
export async function openTurns(reads: Reads): Promise<Counts> {
  const rows = await reads.all<{ agent: string; status: string; count: number }>`select agent, status, count(*) as count from runs
    where status in ('queued', 'running', 'waiting') and agent is not null group by agent, status`;
  const counts = new Map<string, { running: number; waiting: number }>();
  for (const { agent, status, count } of rows) {
    const known = counts.get(agent) ?? { ...NONE };
    known[status === "running" ? "running" : "waiting"] += count;
    counts.set(agent, known);
  }
  return counts;
}

/** Those whose id itself is the mistake are told too: nobody else would. */
export function viewAll({ agents, settings }: Revision, counts: Counts, problemOf: ProblemOf = () => null): AgentView[] {
  const nameless = [...settings.quarantined].filter(([id]) => !agents.has(id));
  return [
    ...[...agents.values()].map((agent) => viewOf(agent, counts, problemOf(agent))),
    ...nameless.map(
      ([id, [problem]]): AgentView => ({
        id,
        model: "",
        state: "quarantined",
        because: problem?.message ?? null,
        problem: null,
        default: false,
        roles: [],
        ...NONE,
      }),
    ),
  ];
}

export function viewOf(agent: Agent, counts: Counts, problem: string | null = null): AgentView {
  const { id, model, state, because, roles } = agent;
  return { id, model, state, because, problem, default: agent.isDefault, roles: [...roles], ...(counts.get(id) ?? NONE) };
}

/** Variables and servers by name: their values are the agent's alone. */
export function detailsOf(
  agent: Agent,
  revision: Revision,
  counts: Counts,
  personality: string | null,
  problem: string | null = null,
): AgentDetails {
  const { subagents } = agent;
  return {
    ...viewOf(agent, counts, problem),
    personality,
    tools: agent.grant.layers.map(({ source, rules }) => ({ source, rules })),
    sees: [...agent.sees],
    dm_scope: agent.dmScope,
    group_scope: agent.groupScope,
    memory_scope: agent.memoryScope,
    workspace_scope: agent.workspaceScope,
    sandbox: agent.sandbox.kind,
    budget: Object.fromEntries(Object.entries(agent.budget).flatMap(([name, limit]) => (limit === undefined ? [] : [[name, limit]]))),
    shared_paths: agent.sharedPaths.map(({ path, mode, name }) => ({ path, mode, ...(name === undefined ? {} : { name }) })),
    env: Object.keys(agent.env),
    mcp: Object.keys(agent.mcp),
    subagents: {
      model: subagents.model,
      max_depth: subagents.maxDepth,
      max_children: subagents.maxChildren,
      agents: subagents.agents.map(({ id, rights }) => ({ id, rights })),
    },
    bindings: revision.settings.config.bindings.filter((binding) => binding.agent === agent.id).length,
    revision: revision.number,
  };
}
