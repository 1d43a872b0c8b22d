import { admitMessage } from "../../acts/admit-message.ts";
import type { Admission, InboundMessage } from "../../contract/wire.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { type RoutingConfig, route, routeNamed } from "../../deciders/routing/route.ts";
import { sessionKey } from "../../deciders/routing/session-key.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Store } from "../../store/store.ts";

export type Accept = (message: InboundMessage) => Promise<Admission>;

/** Takes one message from outside: decides whose it is and stores it. When this resolves, the message cannot be lost. */
export function intake(store: Store, config: RoutingConfig, newId: NewId, reached: ReachedPoint): Accept {
  return async (message) => {
    const address = addressOf(message);
    const decision = message.agent === undefined ? route(config, address) : routeNamed(config, message.agent);
    // An address without an agent is a fact about the config, and is recorded; a wrong name is the caller's mistake.
    if (decision.agent === null && message.agent !== undefined) throw new Failure("agent.unknown", decision.because);
    return admitMessage(store, newId, reached, {
      externalId: message.id,
      address,
      text: message.text,
      decision,
      sessionKey: decision.agent === null ? null : sessionKey(decision.agent, address),
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
