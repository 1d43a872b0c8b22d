import type { ChannelAccount } from "../../../contract/channels.ts";
import type { Channel } from "../../../kernel/channel.ts";
import type { ChannelParts } from "../../../kernel/channel-plugin.ts";
import { partsFor } from "../format/parts-for.ts";
import { openBotApi } from "./bot-api.ts";
import { downloadFile } from "./message-files.ts";
import { listen } from "./poll-updates.ts";
import { MessageSender } from "./send-message.ts";

/** After its entities are parsed. */
const MAX_LENGTH = 4_096;
const EDIT_EVERY_MS = 1_500;
const TYPING_MS = 5_000;

/** A bot of Telegram, by long polling. */
export function telegramChannel(account: ChannelAccount, parts: ChannelParts): Channel {
  const api = openBotApi(account);
  const sender = new MessageSender(api, parts.log);
  return {
    abilities: {
      dedupes: false,
      editEveryMs: EDIT_EVERY_MS,
      typingMs: TYPING_MS,
      reacts: true,
      sendsFiles: true,
      lingersMs: parts.longestWaitMs,
    },
    listen: (inbound, signal) =>
      listen(
        api.calls(signal, () => inbound.stillOurs()),
        parts,
        inbound,
        signal,
      ),
    partsOf: (text) => partsFor(text, { kind: "telegram", maxLength: MAX_LENGTH }),
    send: (message, signal) => sender.send(message, signal),
    edit: (message, id, signal) => sender.edit(message, id, signal),
    typing: (place, signal) => sender.typing(place, signal),
    react: (place, messageId, mark, signal) => sender.react(place, messageId, mark, signal),
    download: (file, maxBytes, signal) => downloadFile(api, file, maxBytes, signal),
  };
}
