import type { Agent } from "./agent.ts";
import type { Revision } from "./revision.ts";

/** The agents as they are now. Whoever needs the same answer twice keeps what it got: `apply` swaps everything at once. */
export class AgentRegistry {
  #current: Revision;
  #list: readonly Agent[];

  constructor(first: Revision) {
    this.#current = first;
    this.#list = [...first.agents.values()];
  }

  get current(): Revision {
    return this.#current;
  }

  /** From the next call on, everybody sees this revision and nothing of the one before. */
  apply(next: Revision): void {
    this.#current = next;
    this.#list = [...next.agents.values()];
  }

  list(): readonly Agent[] {
    return this.#list;
  }

  get(id: string): Agent | undefined {
    return this.#current.agents.get(id);
  }
}
