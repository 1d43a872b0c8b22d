import { type SlackStandIn, slackStandIn } from "../platforms/slack.ts";
import { channelSuite } from "./channel-suite.ts";

channelSuite("Slack", {
  start: slackStandIn,
  group: "C500",
  stranger: "U666",
  dedupes: false,
  checksToken: true,
  cut: async (standIn) => (standIn as SlackStandIn).sockets.cut(),
});
