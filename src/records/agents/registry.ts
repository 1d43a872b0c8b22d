import { type Config, defaultAgentOf } from "../../contract/config.ts";

/** Answers at once, without a key and without a network: an agent that names no model is still an agent. */
const DEFAULT_MODEL = "offline/demo";

export interface Agent {
  readonly id: string;
  readonly model: string;
  readonly personality: string | null;
  readonly isDefault: boolean;
  /** What mail to `role:<role>` and the like reach it by. */
  readonly roles: readonly string[];
}

/** The agents of one revision of the config, with everything they inherit. */
export class AgentRegistry {
  readonly #agents: ReadonlyMap<string, Agent>;

  constructor(config: Pick<Config, "agents" | "model" | "personality">) {
    const chosen = defaultAgentOf(config.agents);
    this.#agents = new Map(
      Object.entries(config.agents).map(([id, own]) => [
        id,
        {
          id,
          model: own.model ?? config.model ?? DEFAULT_MODEL,
          personality: own.personality ?? config.personality ?? null,
          isDefault: id === chosen,
          roles: own.roles ?? [],
        },
      ]),
    );
  }

  list(): Agent[] {
    return [...this.#agents.values()];
  }

  get(id: string): Agent | undefined {
    return this.#agents.get(id);
  }
}
