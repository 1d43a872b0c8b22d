import type { Caller } from "../../kernel/caller.ts";
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

/** An operator may ask anybody; a guest where the operator has listed it; an agent's own program whomever that agent may delegate to. */
export function refuseStranger({ settings, policy }: Revision, caller: Caller, agent: string): void {
  if (caller.kind === "operator") return;
  const { callers } = settings.config.a2a;
  if (caller.kind === "guest" && (callers.includes("*") || callers.includes(caller.name))) return;
  if (caller.kind === "agent" && policy.rightsOn(caller.name, agent) !== null) return;
  if (caller.kind === "agent") throw new Failure("task.not_delegate", `${caller.name} may not delegate to ${agent}`);
  throw new Failure("request.forbidden", `${caller.name} may not ask agents here`, { hint: "The operator lists it under `a2a.callers`." });
}
