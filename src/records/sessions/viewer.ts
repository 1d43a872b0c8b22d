import type { Caller } from "../../kernel/caller.ts";

/** Agents as far as it matters here who may look at whose conversations. */
export interface SeeingAgents {
  get(id: string): { readonly sees: readonly string[] } | undefined;
}

/** Whose sessions somebody may see: all, or those of the agents named here. Guests and channels see none. */
export function visibleAgents(caller: Caller, agents: SeeingAgents): "all" | readonly string[] {
  if (caller.kind === "operator" || caller.kind === "reader") return "all";
  if (caller.kind !== "agent") return [];
  const sees = agents.get(caller.name)?.sees ?? [];
  return sees.includes("*") ? "all" : [...new Set([caller.name, ...sees])];
}

export function sees(visible: "all" | readonly string[], agent: string): boolean {
  return visible === "all" || visible.includes(agent);
}
