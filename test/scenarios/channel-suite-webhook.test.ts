import { webhookStandIn } from "../platforms/webhook.ts";
import { channelSuite } from "./channel-suite.ts";

channelSuite("webhooks", { start: webhookStandIn, group: "room", stranger: "666", dedupes: true, checksToken: false });
