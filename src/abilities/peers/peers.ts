import type { PeerConfig } from "../../contract/a2a.ts";
import type { Clock } from "../../kernel/clock.ts";
import { type PeerClient, peerClient } from "./peer-client.ts";

/** How long a card is taken for true: every look at a task would ask for it anew. */
const FRESH_MS = 5 * 60_000;

interface Known {
  readonly peer: PeerConfig;
  readonly client: PeerClient;
  readonly at: number;
}

/** The peers of the config, as they are asked now. */
export class Peers {
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async open(name: string, peer: PeerConfig, signal: AbortSignal): Promise<PeerClient> {
    const known = this.#known.get(name);
    if (known && known.peer === peer && this.#clock.now() - known.at < FRESH_MS) return known.client;
    const client = await peerClient(peer, signal);
    this.#known.set(name, { peer, client, at: this.#clock.now() });
    return client;
  }

  /** It has not answered: whatever comes next begins with its card. */
  forget(name: string): void {
    this.#known.delete(name);
  }
}
