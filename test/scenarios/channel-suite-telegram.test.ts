import { type TelegramStandIn, telegramStandIn } from "../platforms/telegram.ts";
import { channelSuite } from "./channel-suite.ts";

channelSuite("Telegram", {
  start: telegramStandIn,
  group: "-100123456",
  stranger: "666",
  dedupes: false,
  checksToken: true,
  cut: async (standIn) => {
    await (standIn as TelegramStandIn).down();
    await (standIn as TelegramStandIn).up();
  },
});
