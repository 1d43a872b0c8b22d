import type { ChannelAccount } from "../contract/channels.ts";
import type { Channel } from "./channel.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";
import type { Random } from "./random.ts";

export interface ChannelParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * How long a request that waits at the platform for what comes may wait there, in whole seconds; the more it is asked for, the later another
   * node can take the account over. What it comes to is `abilities.lingersMs`.
   */
  readonly longestWaitMs: number;
}

/** Port: a kind of channel, ours or one that the program around us brings. Whatever it needs is loaded when the first account is opened. */
export interface ChannelPlugin {
  /** As it stands under `channels:` and in bindings. */
  readonly platform: string;
  /** Whether it brings replies out, of this account; absent: yes. Where it does not, they are collected over the API. */
  sends?(account: ChannelAccount): boolean;
  open(account: ChannelAccount, parts: ChannelParts): Promise<Channel>;
}
