import type { Address } from "../../../deciders/routing/address.ts";
import { hearingOf } from "../../../deciders/routing/session-reach.ts";
import type { Agent } from "../../../records/agents/agent.ts";
import type { Revision } from "../../../records/agents/revision.ts";
import type { Standpoint } from "../../../records/memory/standpoint.ts";

/** From where a turn remembers. */
export function standpointOf(agent: Agent, revision: Revision, address: Address): Standpoint {
  const hearing = hearingOf(address, agent);
  return {
    agent: agent.id,
    scope: agent.memoryScope,
    place: address,
    person: personText(address),
    persons: hearing === "everybody in private" ? "all" : revision.sessionKeys.idsOf(address).map(personText),
    heard: hearing === "everybody in private" ? "private" : hearing,
  };
}

/** The platform ends at the first ":", so that nobody's id can be read as somebody else's. */
function personText({ platform, peer }: Pick<Address, "platform" | "peer">): string {
  return `${platform.replace(/[%:]/g, encodeURIComponent)}:${peer}`;
}
