import type { ChannelPlugin } from "../../kernel/channel-plugin.ts";

/** Those that come with the house, in the order in which they are shown. Each loads what it needs with its first account. */
export const BUILT_IN_CHANNELS: readonly ChannelPlugin[] = [
  {
    platform: "telegram",
    open: async (account, parts) => (await import("./telegram/telegram-channel.ts")).telegramChannel(account, parts),
  },
  { platform: "discord", open: async (account, parts) => (await import("./discord/discord-channel.ts")).discordChannel(account, parts) },
  { platform: "slack", open: async (account, parts) => (await import("./slack/slack-channel.ts")).slackChannel(account, parts) },
  {
    platform: "whatsapp",
    open: async (account, parts) => (await import("./whatsapp/whatsapp-channel.ts")).whatsappChannel(account, parts),
  },
  {
    platform: "webhook",
    sends: ({ url }) => url !== undefined,
    open: async (account, parts) => (await import("./webhook/webhook-channel.ts")).webhookChannel(account, parts),
  },
];
