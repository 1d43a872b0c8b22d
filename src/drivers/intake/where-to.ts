import { type Placed, placeMessage } from "../../acts/place-message.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Store } from "../../store/store.ts";
import { handoverTargets } from "./handover-targets.ts";

/** Where a message from there would go now, handovers included. */
export type WhereTo = (address: Address) => Promise<Placed>;

export function whereTo(store: Store, agents: Pick<AgentRegistry, "current">): WhereTo {
  return (address) => {
    const revision = agents.current;
    const decision = revision.router.route(address);
    const sessionKey = decision.agent === null ? null : revision.sessionKeys.keyFor(decision.agent, address);
    return placeMessage(store.read, { decision, sessionKey }, handoverTargets(revision, address));
  };
}
