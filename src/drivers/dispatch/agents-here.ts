import {
  type AgentHome,
  absenceOf,
  type MissingNodes,
  missingNodes,
  movesHere,
  type PlacedAgent,
  type PlaceNode,
  placeOf,
} from "../../deciders/placement/placement.ts";
import { touchesFiles } from "../../deciders/policy/touches-files.ts";
import type { Log } from "../../kernel/log.ts";
import type { Agent } from "../../records/agents/agent.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { moveHome, nodesChanged, readPlaces, renameHomes, type SeenNode, settleHomes } from "../../records/nodes/agent-homes.ts";
import type { SqlFragment } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import type { Handler } from "./dispatcher.ts";

export interface AgentsHereParts {
  readonly store: Store;
  readonly agents: Pick<AgentRegistry, "current">;
  readonly node: PlaceNode;
  readonly log: Log;
  /** Whether an agent has left files in this home. */
  hasFiles(agent: string): boolean;
}

/** Of the agents of one node, in one line of the log. */
const TOLD = 10;
const NOBODY: ReadonlySet<string> = new Set();

/**
 * Whose turns this node takes. What touches files is done where the files are (deciders/placement): the home of the first node that takes a
 * turn of an agent is its home, durably before that turn begins, and every other node leaves the agent's work to it, also when it is gone.
 *
 * What is known of homes is kept: a home changes only with the config, or for an agent that has none yet. A new revision is taken up with a
 * fresh look, so that no turn costs a statement. A database file has one node, and nothing to divide.
 */
export class AgentsHere {
  readonly #parts: AgentsHereParts;
  readonly #isAlone: boolean;
  #homes = new Map<string, AgentHome>();
  /** Grows with whatever could make other agents another node's. */
  #version = 0;
  #alive: readonly SeenNode[] = [];
  /** The revision whose homes are known. */
  #looked: Revision | undefined;
  #looking: Promise<void> | undefined;
  #left: { readonly revision: Revision; readonly version: number; readonly agents: ReadonlySet<string> } | undefined;
  readonly #touching = new WeakMap<Revision, Map<string, boolean>>();
  readonly #settling = new Map<string, Promise<void>>();
  #told: ReadonlySet<string> = new Set();

  constructor(parts: AgentsHereParts) {
    this.#parts = parts;
    this.#isAlone = parts.store.kind === "sqlite";
  }

  /** Before anything is claimed. Whoever has left files here has them here, also where it was before anybody kept count. */
  async begin(): Promise<void> {
    const { store, node, log, agents } = this.#parts;
    if (this.#isAlone) return;
    const replaced = await renameHomes(store, node);
    if (replaced.length > 0)
      log.warn("this node has another home than the one before it with its name; what these agents had there may be missing", {
        node: node.name,
        agents: inShort(replaced),
      });
    await this.#look();
    const revision = agents.current;
    const found = [...revision.agents.values()].filter(
      (agent) => !this.#homes.has(agent.id) && this.#parts.hasFiles(agent.id) && this.#placeOf(revision, agent) === "unsettled",
    );
    if (found.length > 0)
      await this.#settle(
        revision,
        found.map(({ id }) => id),
      );
  }

  /** Whose work is left to others. */
  elsewhere(): ReadonlySet<string> {
    if (this.#isAlone) return NOBODY;
    const revision = this.#parts.agents.current;
    if (this.#left?.revision === revision && this.#left.version === this.#version) return this.#left.agents;
    const left = [...revision.agents.values()].filter(
      (agent) => (agent.nodes !== null || this.#homes.has(agent.id)) && this.#placeOf(revision, agent) === "elsewhere",
    );
    const agents = new Set(left.map(({ id }) => id));
    this.#left = { revision, version: this.#version, agents };
    return agents;
  }

  /** Whether this node takes a turn of the agent; afterwards the others know that its files are here. */
  async isHere(id: string): Promise<boolean> {
    if (this.#isAlone) return true;
    while (this.isBehind) await this.#look();
    const revision = this.#parts.agents.current;
    const agent = revision.agents.get(id);
    // Whoever is not in the config has nothing to do that could touch a file.
    if (!agent) return true;
    if (this.#placeOf(revision, agent) === "unsettled") await this.#settleOnce(revision, id);
    return this.#placeOf(revision, agent) === "here";
  }

  /** Hands back, as if it had not been claimed, what belongs to another node. */
  only(take: Handler): Handler {
    return async (item, lost) => {
      if (item.tenant !== null && !(await this.isHere(item.tenant))) await this.#parts.store.queue.handBack([item]);
      else await take(item, lost);
    };
  }

  /** The config is another one than at the last look. */
  get isBehind(): boolean {
    return this.#looked !== this.#parts.agents.current;
  }

  /** For the pulse: whether somebody has come or gone. */
  changed(): SqlFragment {
    return nodesChanged(this.#alive);
  }

  /** After that, and after every change of the config. */
  async follow(): Promise<void> {
    await this.#look();
    this.#tell();
  }

  /** Nodes that agents are to run on and that are not there. */
  missing(): MissingNodes[] {
    return missingNodes(this.#parts.agents.current.agents.values(), (agent) => this.problemOf(agent), this.#alive);
  }

  /** Why nobody takes the turns of an agent; null: somebody does. */
  problemOf(agent: Pick<Agent, "id" | "nodes">): string | null {
    if (this.#isAlone) return null;
    return absenceOf(this.#placed(this.#parts.agents.current, agent), this.#homes.get(agent.id), this.#alive);
  }

  #look(): Promise<void> {
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookNow(): Promise<void> {
    const { store, agents, node } = this.#parts;
    const revision = agents.current;
    const { homes, nodes } = await readPlaces(store.read);
    const known = new Map<string, AgentHome>();
    for (const row of homes) {
      const agent = revision.agents.get(row.agent);
      const moves = agent !== undefined && movesHere(agent, row, node, nodes) && (await moveHome(store, row, node));
      known.set(row.agent, moves ? { node: node.name, home: node.home } : { node: row.node, home: row.home });
    }
    this.#homes = known;
    this.#version++;
    this.#alive = nodes.filter(({ isAlive }) => isAlive);
    this.#looked = revision;
  }

  /** Many turns of a new agent come at once. */
  async #settleOnce(revision: Revision, id: string): Promise<void> {
    const settling = this.#settling.get(id) ?? this.#settle(revision, [id]).finally(() => this.#settling.delete(id));
    this.#settling.set(id, settling);
    await settling;
  }

  async #settle(revision: Revision, ids: readonly string[]): Promise<void> {
    const { store, node, log } = this.#parts;
    const settled = await settleHomes(store, ids, node);
    for (const { agent, ...home } of settled) this.#homes.set(agent, home);
    if (settled.some(({ home }) => home !== node.home)) this.#version++;
    const here = settled.filter(({ home }) => home === node.home).map(({ agent }) => agent);
    if (here.length > 0) log.info("this node has the files of agents", { agents: inShort(here), revision: revision.number });
  }

  #placeOf(revision: Revision, agent: Agent): ReturnType<typeof placeOf> {
    return placeOf(this.#placed(revision, agent), this.#homes.get(agent.id), this.#parts.node);
  }

  #placed(revision: Revision, { id, nodes }: Pick<Agent, "id" | "nodes">): PlacedAgent {
    const touches = (): boolean => this.#touches(revision, id);
    return {
      nodes,
      // Of most agents nobody needs to know, and looking at what each may call takes its time.
      get touchesFiles() {
        return touches();
      },
    };
  }

  #touches(revision: Revision, id: string): boolean {
    const known = this.#touching.get(revision) ?? new Map<string, boolean>();
    this.#touching.set(revision, known);
    const before = known.get(id);
    if (before !== undefined) return before;
    const touches = touchesFiles(revision.policy, id);
    known.set(id, touches);
    return touches;
  }

  /** Each once. */
  #tell(): void {
    const { log } = this.#parts;
    const missing = this.missing();
    for (const { problem, agents } of missing)
      if (!this.#told.has(problem)) log.warn("nodes of agents are not there", { agents: inShort(agents), problem });
    const now = new Set(missing.map(({ problem }) => problem));
    for (const problem of this.#told) if (!now.has(problem)) log.info("nodes of agents are there again", { problem });
    this.#told = now;
  }
}

function inShort(names: readonly string[]): string {
  return names.length <= TOLD ? names.join(", ") : `${names.slice(0, TOLD).join(", ")} and ${names.length - TOLD} more`;
}
