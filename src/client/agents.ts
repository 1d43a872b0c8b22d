import {
  type AgentDetails,
  type AgentView,
  agentDetails,
  agentView,
  type ConfigRevisionList,
  configRevisions,
  type FullAgentList,
  fullAgentList,
  type RestartedAgent,
  restartedAgent,
} from "../contract/agents.ts";
import type { ApiClient } from "./api-client.ts";

/** Agents, as an operator sees and changes them. */
export class AgentsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(): Promise<FullAgentList> {
    return this.#api.get(fullAgentList, "/api/agents");
  }

  get(id: string): Promise<AgentDetails> {
    return this.#api.get(agentDetails, pathOf(id));
  }

  setState(id: string, verb: "pause" | "resume" | "archive"): Promise<AgentView> {
    return this.#api.post(agentView, `${pathOf(id)}/${verb}`, {});
  }

  restart(id: string): Promise<RestartedAgent> {
    return this.#api.post(restartedAgent, `${pathOf(id)}/restart`, {});
  }

  revisions(limit?: number): Promise<ConfigRevisionList> {
    return this.#api.get(configRevisions, "/api/config/revisions", { limit });
  }
}

function pathOf(id: string): string {
  return `/api/agents/${encodeURIComponent(id)}`;
}
