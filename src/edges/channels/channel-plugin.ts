export type { ChannelParts, ChannelPlugin } from "../../kernel/channel-plugin.ts";
