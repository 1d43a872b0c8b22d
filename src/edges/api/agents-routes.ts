import {
  type AgentDetails,
  type AgentView,
  agentDetails,
  agentList,
  agentView,
  type ConfigRevisionList,
  configRevisions,
  type RestartedAgent,
  restartedAgent,
  revisionQuery,
} from "../../contract/agents.ts";
import type { Caller } from "../../kernel/caller.ts";
import { LOOKERS, OPERATORS, OVERSEERS, type Route, route } from "./route.ts";

/** What the daemon lets operators do with its agents. A change is in the config and in force when its promise is kept. */
export interface AgentControl {
  list(): Promise<{ readonly agents: AgentView[]; readonly revision: number }>;
  /** Unknown ids are refused. */
  details(id: string): Promise<AgentDetails>;
  setState(id: string, state: "active" | "paused" | "archived"): Promise<AgentView>;
  restart(id: string, by: Caller): Promise<RestartedAgent>;
  revisions(limit: number): Promise<ConfigRevisionList>;
}

const VERBS = { pause: "paused", resume: "active", archive: "archived" } as const;
const SUMMARIES = {
  pause: "From now on what comes for the agent waits",
  resume: "The agent answers again, first what has waited",
  archive: "From now on what comes for the agent is refused, with the reason",
};

export function agentsRoutes(control: AgentControl): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/agents",
      summary: "The agents as they are now; to agents and guests, their names",
      allow: LOOKERS,
      answers: { 200: agentList },
      handle: async ({ caller }) => {
        const { agents, revision } = await control.list();
        return { status: 200, body: { agents: overlooks(caller) ? agents : agents.map(({ id }) => ({ id })), revision } };
      },
    }),
    route({
      method: "GET",
      path: "/api/agents/:id",
      summary: "One agent, with everything that it inherits",
      allow: OVERSEERS,
      answers: { 200: agentDetails },
      handle: async ({ params }) => ({ status: 200, body: await control.details(params.id) }),
    }),
    ...(Object.keys(VERBS) as (keyof typeof VERBS)[]).map((verb) =>
      route({
        method: "POST",
        path: `/api/agents/:id/${verb}` as "/api/agents/:id/pause",
        summary: SUMMARIES[verb],
        allow: OPERATORS,
        answers: { 200: agentView },
        handle: async ({ params }) => ({ status: 200, body: await control.setState(params.id, VERBS[verb]) }),
      }),
    ),
    route({
      method: "POST",
      path: "/api/agents/:id/restart",
      summary: "Its running turns begin again, as the agent is now",
      allow: OPERATORS,
      answers: { 200: restartedAgent },
      handle: async ({ params, caller }) => ({ status: 200, body: await control.restart(params.id, caller) }),
    }),
    route({
      method: "GET",
      path: "/api/config/revisions",
      summary: "What the config was when, what changed, and what was rejected and why; the newest first",
      allow: OVERSEERS,
      query: revisionQuery,
      answers: { 200: configRevisions },
      handle: async ({ query }) => ({ status: 200, body: await control.revisions(query.limit) }),
    }),
  ];
}

function overlooks({ kind }: Caller): boolean {
  return OVERSEERS.includes(kind);
}
