import { RESERVED_NAMES } from "../../contract/tokens.ts";
import type { Caller, CallerKind } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { didYouMean } from "../../kernel/nearest.ts";

/** The agents there are now, as far as tokens care. */
export interface KnownAgents {
  list(): readonly { readonly id: string; readonly roles: readonly string[]; readonly state?: string }[];
}

/** Whom a scope stands for, in the config of this moment. A scope that stands for nobody is refused with the reason. */
export function callerOf(scope: string, agents: KnownAgents): Caller {
  const [word = "", name = ""] = split(scope);
  switch (word) {
    case "operator":
      return caller("operator", "operator");
    case "read":
      return caller("reader", "reader");
    case "channel":
      return caller("channel", name);
    case "guest":
      refuseTaken(name, agents);
      return caller("guest", name);
    case "agent": {
      const agent = agents.list().find(({ id }) => id === name);
      if (!agent) {
        const ids = agents.list().map(({ id }) => id);
        throw new Failure("agent.unknown", `there is no agent "${name}"${didYouMean(name, ids)}`);
      }
      // Whoever is out of service acts through nobody. One that is only paused may still be spoken for.
      if (agent.state === "archived") throw new Failure("agent.archived", `agent ${name} is archived`);
      if (agent.state === "quarantined") throw new Failure("agent.quarantined", `agent ${name} is quarantined`);
      return { ...caller("agent", name), roles: agent.roles };
    }
    default:
      throw new Failure("request.malformed", `scope: "${scope}" is none`);
  }
}

function split(scope: string): [string, string] {
  const colon = scope.indexOf(":");
  return colon < 0 ? [scope, ""] : [scope.slice(0, colon), scope.slice(colon + 1)];
}

/** Identities are bare names: a guest who is called like an agent would be that agent wherever names are listed. */
function refuseTaken(name: string, agents: KnownAgents): void {
  if (RESERVED_NAMES.includes(name)) throw new Failure("request.malformed", `scope: the name "${name}" is reserved`);
  if (agents.list().some(({ id }) => id.toLowerCase() === name))
    throw new Failure("request.malformed", `scope: "${name}" is the name of an agent; a guest needs another`);
}

function caller(kind: CallerKind, name: string): Caller {
  return { kind, name, roles: [], run: null, step: null, call: null };
}
