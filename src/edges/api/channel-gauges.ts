import { viewChannels } from "../../acts/view-channels.ts";
import type { ChannelView } from "../../contract/channels.ts";
import type { AccountName } from "../../records/channels/channel-accounts.ts";
import type { Store } from "../../store/store.ts";
import type { Gauge, Sample } from "./metrics.ts";

/**
 * How channels are doing, for whoever measures. Anybody may ask for measurements, and each time would be a question to the database: it is
 * asked by `look`, which whoever does the chores calls.
 */
export class ChannelGauges {
  readonly #store: Store;
  readonly #accounts: () => readonly AccountName[];
  #views: readonly ChannelView[] = [];

  constructor(store: Store, accounts: () => readonly AccountName[]) {
    this.#store = store;
    this.#accounts = accounts;
  }

  async look(): Promise<void> {
    this.#views = await viewChannels(this.#store.read, this.#accounts());
  }

  get gauges(): Gauge[] {
    const each = (of: (view: ChannelView) => number) => (): Sample[] =>
      this.#views.map((view) => ({ labels: { platform: view.platform, account: view.account }, value: of(view) }));
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
  }
}
