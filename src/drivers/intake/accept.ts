import { admitMessage } from "../../acts/admit-message.ts";
import type { Admission, InboundMessage } from "../../contract/wire.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { routeNamed } from "../../deciders/routing/route.ts";
import { sessionKeyFor } from "../../deciders/routing/session-key.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Store } from "../../store/store.ts";

/** Rules told with a stored message: enough to see why, and no more than a message may cost. */
const TOLD_RULES = 100;

export type Accept = (message: InboundMessage) => Promise<Admission>;

/** Takes one message from outside: decides whose it is and stores it. When this resolves, the message cannot be lost. */
export function intake(store: Store, agents: Pick<AgentRegistry, "current">, newId: NewId, reached: ReachedPoint): Accept {
  return async (message) => {
    const address = addressOf(message);
    const { router, settings } = agents.current;
    const { config } = settings;
    const decision = message.agent === undefined ? router.explain(address, TOLD_RULES) : routeNamed(config.agents, message.agent);
    // An address without an agent is a fact about the config, and is recorded; a wrong name is the caller's mistake.
    if (decision.agent === null && message.agent !== undefined) throw new Failure("agent.unknown", decision.because);
    return admitMessage(store, newId, reached, {
      externalId: message.id,
      address,
      text: message.text,
      decision,
      sessionKey: decision.agent === null ? null : sessionKeyFor(config, decision.agent, address),
    });
  };
}

function addressOf(message: InboundMessage): Address {
  return {
    platform: message.platform,
    account: message.account,
    guild: message.guild ?? message.team ?? null,
    chat: message.chat,
    topic: message.topic ?? null,
    chatType: message.chat_type,
    peer: message.peer,
    roles: message.roles,
  };
}
