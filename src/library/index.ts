export { z } from "zod";
export { ClientError as GuildhallError } from "../client/client-error.ts";
export type { ChannelAccount } from "../contract/channels.ts";
export type { ErrorCode } from "../contract/errors.ts";
export type {
  Channel,
  ChannelAbilities,
  ChatFile,
  ChatMessage,
  ChatPlace,
  Inbound,
  Mark,
  Outbound,
  OutboundFile,
  Part,
} from "../kernel/channel.ts";
export { ChannelTrouble, SendTrouble } from "../kernel/channel.ts";
export type { ChannelParts, ChannelPlugin } from "../kernel/channel-plugin.ts";
export { type AskOptions, createGuildhall, type Guildhall } from "./create-guildhall.ts";
export { type AnyTool, defineTool, type ToolContext, type ToolDefinition, type ToolOutcome } from "./define-tool.ts";
export { GuildhallClient } from "./guildhall-client.ts";
export type { GuildhallConfig, GuildhallOptions } from "./options.ts";
