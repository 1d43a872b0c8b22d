import type { ChannelAccount } from "../../../contract/channels.ts";
import { type Channel, ChannelTrouble } from "../../../kernel/channel.ts";
import type { ChannelParts } from "../channel-plugin.ts";

export function discordChannel(account: ChannelAccount, _parts: ChannelParts): Channel {
  throw new ChannelTrouble("refused", `the channel ${account.platform} is not there yet`);
}
