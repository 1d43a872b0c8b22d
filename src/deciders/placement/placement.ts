/** A node as far as it matters who runs on it. `home`: of the folder in which its agents have their files. */
export interface PlaceNode {
  readonly name: string;
  readonly home: string;
  readonly labels: readonly string[];
}

/** What of an agent decides where its turns are taken. */
export interface PlacedAgent {
  /** Names and labels of nodes; `["*"]`: all; null: the config says nothing. */
  readonly nodes: readonly string[] | null;
  readonly touchesFiles: boolean;
}

/** Where the files of an agent are: the home, and what its node was called when it was last heard of. */
export interface AgentHome {
  readonly node: string;
  readonly home: string;
}

const ANYWHERE = "*";

function isNamed(nodes: readonly string[], { name, labels }: Pick<PlaceNode, "name" | "labels">): boolean {
  return nodes.includes(ANYWHERE) || nodes.includes(name) || labels.some((label) => nodes.includes(label));
}

/** `unsettled`: here, if no other node is quicker to say that it has the agent's files. */
export function placeOf(agent: PlacedAgent, home: AgentHome | undefined, here: PlaceNode): "here" | "elsewhere" | "unsettled" {
  const { nodes } = agent;
  if (nodes !== null && !isNamed(nodes, here)) return "elsewhere";
  if (nodes?.includes(ANYWHERE)) return "here";
  // A home that is here changes nothing for anybody.
  if (home && (nodes !== null || home.home === here.home)) return "here";
  if (!agent.touchesFiles) return "here";
  return home ? "elsewhere" : "unsettled";
}

/** Whether the operator has named other nodes than the one that has the files, and this one among them: then they are expected here. */
export function movesHere({ nodes }: Pick<PlacedAgent, "nodes">, home: AgentHome, here: PlaceNode, all: readonly PlaceNode[]): boolean {
  if (nodes === null || nodes.includes(ANYWHERE) || !isNamed(nodes, here)) return false;
  const last = all.find((node) => node.home === home.home) ?? { name: home.node, labels: [] };
  return !isNamed(nodes, last);
}

/** Why nobody takes the turns of this agent; null: somebody does. `alive`: the nodes that are there. */
export function absenceOf(agent: PlacedAgent, home: AgentHome | undefined, alive: readonly PlaceNode[]): string | null {
  const { nodes } = agent;
  // Where nobody is there at all, it is not for want of the right one.
  if (alive.length === 0) return null;
  if (nodes !== null) {
    if (alive.some((node) => isNamed(nodes, node))) return null;
    return `its turns wait: no node that is there has the name or label ${nodes.join(" or ")}`;
  }
  if (!home || alive.some((node) => node.home === home.home) || !agent.touchesFiles) return null;
  return `its turns wait: its files are on the node ${home.node}, which is not there`;
}

/** Agents whose nodes are not there, and what is missing: one that is gone may have had a thousand of them. */
export interface MissingNodes {
  readonly problem: string;
  readonly agents: string[];
}

/**
 * `absence`: why nobody takes the turns of an agent. Names and labels beside which another one is there are told too: nobody waits, and
 * somebody may have mistyped.
 */
export function missingNodes<Agent extends { readonly id: string; readonly nodes: readonly string[] | null }>(
  agents: Iterable<Agent>,
  absence: (agent: Agent) => string | null,
  alive: readonly PlaceNode[],
): MissingNodes[] {
  const found = new Map<string, string[]>();
  for (const agent of agents) {
    const problem = absence(agent) ?? unknownNames(agent.nodes, alive);
    if (problem !== null) found.set(problem, [...(found.get(problem) ?? []), agent.id]);
  }
  return [...found].map(([problem, ids]) => ({ problem, agents: ids }));
}

function unknownNames(nodes: readonly string[] | null, alive: readonly PlaceNode[]): string | null {
  if (alive.length === 0) return null;
  const unknown = (nodes ?? []).filter((name) => name !== ANYWHERE && !alive.some((node) => isNamed([name], node)));
  return unknown.length === 0 ? null : `no node that is there has the name or label ${unknown.join(" or ")}`;
}
