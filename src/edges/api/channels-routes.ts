import { pairSenderIn, unpairSenderIn } from "../../acts/pair-sender.ts";
import { viewChannels } from "../../acts/view-channels.ts";
import { channelList, pairedSender, pairingCode, pairingList, removedPairing } from "../../contract/channels.ts";
import type { AccountName } from "../../records/channels/channel-accounts.ts";
import { listPairings } from "../../records/channels/pairings.ts";
import type { Store } from "../../store/store.ts";
import { OPERATORS, OVERSEERS, type Route, route } from "./route.ts";

/** `accounts`: those of the config as it is now. */
export function channelsRoutes(store: Store, accounts: () => readonly AccountName[]): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/channels",
      summary: "The accounts on chat platforms, and how they are doing",
      allow: OVERSEERS,
      answers: { 200: channelList },
      handle: async () => ({ status: 200, body: { channels: await viewChannels(store.read, accounts()) } }),
    }),
    route({
      method: "GET",
      path: "/api/pairings",
      summary: "Who was let in by a code, and who holds one now",
      allow: OVERSEERS,
      answers: { 200: pairingList },
      handle: async () => ({ status: 200, body: { pairings: await listPairings(store.read) } }),
    }),
    route({
      method: "POST",
      path: "/api/pairings",
      summary: "Let in whoever was told this code",
      allow: OPERATORS,
      body: pairingCode,
      answers: { 201: pairedSender },
      handle: ({ caller, body, transact }) =>
        transact("pair", async (tx) => ({ status: 201, body: await pairSenderIn(store, tx, body.code, caller.name) })),
    }),
    route({
      method: "DELETE",
      path: "/api/pairings/:platform/:account/:peer",
      summary: "No longer let in somebody who was paired; a code of theirs is void",
      allow: OPERATORS,
      answers: { 200: removedPairing },
      handle: ({ caller, params: { platform, account, peer }, transact }) =>
        transact("unpair", async (tx) => {
          await unpairSenderIn(store, tx, { platform, account, peer }, caller.name);
          return { status: 200, body: { platform, account, peer, removed: true } };
        }),
    }),
  ];
}
