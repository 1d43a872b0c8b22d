import { type DiscordStandIn, discordStandIn } from "../platforms/discord.ts";
import { channelSuite } from "./channel-suite.ts";

channelSuite("Discord", {
  start: discordStandIn,
  group: "500",
  stranger: "666",
  dedupes: true,
  checksToken: true,
  cut: async (standIn) => (standIn as DiscordStandIn).gateway.cut(),
});
