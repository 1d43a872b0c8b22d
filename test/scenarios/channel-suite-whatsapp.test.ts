import { whatsappStandIn } from "../platforms/whatsapp.ts";
import { channelSuite } from "./channel-suite.ts";

channelSuite("WhatsApp", { start: whatsappStandIn, stranger: "666", dedupes: false, checksToken: true });
