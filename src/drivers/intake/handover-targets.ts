import type { HandoverTargets } from "../../acts/place-message.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { Revision } from "../../records/agents/revision.ts";

/** Whom a conversation can be with that was handed over. One who is only paused keeps it: its messages wait. */
export function handoverTargets({ agents, sessionKeys }: Pick<Revision, "agents" | "sessionKeys">, address: Address): HandoverTargets {
  return {
    refusal: (id) => {
      const state = agents.get(id)?.state;
      if (state === undefined) return "there is no such agent any more";
      return state === "archived" || state === "quarantined" ? `it is ${state}` : null;
    },
    sessionKey: (id) => sessionKeys.keyFor(id, address),
  };
}
