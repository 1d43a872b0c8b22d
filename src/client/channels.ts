import {
  type ChannelList,
  channelList,
  type PairedSender,
  type PairingList,
  pairedSender,
  pairingList,
  removedPairing,
} from "../contract/channels.ts";
import type { ApiClient } from "./api-client.ts";

/** Accounts on chat platforms, and whom they let in. */
export class ChannelsClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(): Promise<ChannelList> {
    return this.#api.get(channelList, "/api/channels");
  }

  pairings(): Promise<PairingList> {
    return this.#api.get(pairingList, "/api/pairings");
  }

  pair(code: string): Promise<PairedSender> {
    return this.#api.post(pairedSender, "/api/pairings", { code });
  }

  async unpair({ platform, account, peer }: PairedSender): Promise<void> {
    await this.#api.remove(removedPairing, `/api/pairings/${[platform, account, peer].map(encodeURIComponent).join("/")}`);
  }
}
