import { viewChannels } from "../../acts/view-channels.ts";
import type { ChannelView } from "../../contract/channels.ts";
import type { AccountName } from "../../records/channels/channel-accounts.ts";
import type { Store } from "../../store/store.ts";
import type { Look } from "./looked-gauges.ts";
import type { Sample } from "./metrics.ts";

/** How channels are doing, for whoever measures. */
export function channelGauges(store: Store, accounts: () => readonly AccountName[]): Look {
  return async () => {
    const views = await viewChannels(store.read, accounts());
    const each = (of: (view: ChannelView) => number) => (): Sample[] =>
      views.map((view) => ({ labels: { platform: view.platform, account: view.account }, value: of(view) }));
    return [
      {
        name: "guildhall_channel_up",
        help: "Whether the account is connected.",
        type: "gauge",
        read: each(({ state }) => (state === "connected" ? 1 : 0)),
      },
      {
        name: "guildhall_channel_replies_waiting",
        help: "Replies that have not arrived yet.",
        type: "gauge",
        read: each(({ waiting }) => waiting),
      },
    ];
  };
}
