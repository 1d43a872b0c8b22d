import { Failure } from "../../kernel/failure.ts";
import type { Agent } from "../../records/agents/agent.ts";
import type { Revision } from "../../records/agents/revision.ts";

/** One that pauses is published all the same: what it is asked waits. */
export function publishedIn({ settings, agents }: Revision): Agent[] {
  const { agents: named } = settings.config.a2a;
  return [...agents.values()].filter(
    ({ id, state }) => (named.includes("*") || named.includes(id)) && state !== "archived" && state !== "quarantined",
  );
}

/** Whoever is not published is not there. */
export function publishedAgent(revision: Revision, id: string): Agent {
  const found = publishedIn(revision).find((agent) => agent.id === id);
  if (!found) throw new Failure("request.not_found", `there is no agent "${id.slice(0, 100)}" here`);
  return found;
}

/** The default agent's card stands for the house, else the first one's. */
export function firstPublished(revision: Revision): Agent {
  const all = publishedIn(revision);
  const chosen = all.find(({ isDefault }) => isDefault) ?? all[0];
  if (!chosen) throw new Failure("request.not_found", "no agent is published here");
  return chosen;
}
