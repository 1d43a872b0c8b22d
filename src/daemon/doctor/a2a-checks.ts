import type { PeerClient } from "../../abilities/peers/peer-client.ts";
import { PeerTrouble } from "../../abilities/peers/peer-trouble.ts";
import type { PeerConfig } from "../../contract/a2a.ts";
import { messageOf } from "../../kernel/failure.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { type Finding, ok, warning } from "./check.ts";

const ANSWER_MS = 3_000;
/** No task has this name: whoever knows none by it has accepted our token. */
const NO_TASK = "doctor";

/** Who is published to other houses, and which of those that we ask answer. Where nothing is written about them, nothing is said. */
export async function a2aChecks({ config }: Settings): Promise<Finding[]> {
  const peers = Object.entries(config.peers).map(([name, peer]) => peerCheck(name, peer));
  return [...publishedChecks(config), ...(await Promise.all(peers))];
}

function publishedChecks({ a2a, agents }: Settings["config"]): Finding[] {
  const ids = a2a.agents.includes("*") ? Object.keys(agents) : a2a.agents;
  if (ids.length === 0) return [];
  const alone = ids.filter((id) => agents[id]?.guests.length === 0);
  return [
    ok("a2a", `published: ${ids.join(", ")}`),
    ...alone.map((id) =>
      warning(`a2a.${id}`, "it is published, and nobody but operators may ask it", `Name who may: agents.${id}.guests: [name].`),
    ),
  ];
}

async function peerCheck(name: string, peer: PeerConfig): Promise<Finding> {
  const late = AbortSignal.timeout(ANSWER_MS);
  const id = `peer.${name}`;
  try {
    const { peerClient } = await import("../../abilities/peers/peer-client.ts");
    const client = await peerClient(peer, late);
    await acceptsUs(client, late);
    return ok(id, `${client.card.name} answers${client.card.streaming ? " and streams" : ""}`);
  } catch (error) {
    const found = late.aborted ? `it does not answer within ${ANSWER_MS / 1000} s` : messageOf(error);
    return warning(id, found, `Check peers.${name}.url and its token, and that the other side runs.`);
  }
}

async function acceptsUs(client: PeerClient, signal: AbortSignal): Promise<void> {
  try {
    await client.look(NO_TASK, signal);
  } catch (error) {
    if (!(error instanceof PeerTrouble) || error.kind !== "unknown") throw error;
  }
}
