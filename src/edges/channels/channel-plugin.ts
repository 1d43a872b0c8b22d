import type { ChannelAccount } from "../../contract/channels.ts";
import type { Channel } from "../../kernel/channel.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Log } from "../../kernel/log.ts";
import type { Random } from "../../kernel/random.ts";

export interface ChannelParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
}

/** A kind of channel: ours, or one that the program around us brings. Whatever it needs is loaded when the first account is opened. */
export interface ChannelPlugin {
  /** As it stands under `channels:` and in bindings. */
  readonly platform: string;
  open(account: ChannelAccount, parts: ChannelParts): Promise<Channel>;
}
