import { type AllowedMentionsTypes, type CreateMessageOptions, MessageFlags } from "@discordjs/core/http-only";
import type { ChannelAccount } from "../../../contract/channels.ts";
import { sha256 } from "../../../kernel/canonical-json.ts";
import type { Channel, ChatPlace, Mark, Outbound } from "../../../kernel/channel.ts";
import type { ChannelParts } from "../../../kernel/channel-plugin.ts";
import { partsFor } from "../format/parts-for.ts";
import { download } from "./attachments.ts";
import { DiscordApi, isGone, sendTrouble } from "./discord-api.ts";
import { Gateway } from "./gateway.ts";
import { channelIdOf, Places } from "./places.ts";

const MAX_LENGTH = 2_000;
const MAX_NONCE = 25;
const TYPING_MS = 10_000;
/** A channel takes five edits in five seconds. */
const EDIT_EVERY_MS = 1_500;
const SIGNS: Readonly<Record<Mark, string>> = { seen: "👀", done: "✅", failed: "❌" };
/**
 * Whatever an agent writes, nobody is called by it, and no address in it is opened for a preview: that would tell what is in it to whoever
 * owns the address.
 */
const HARMLESS = {
  allowed_mentions: { parse: [] as AllowedMentionsTypes[], replied_user: false },
  flags: MessageFlags.SuppressEmbeds as const,
};

export function discordChannel(account: ChannelAccount, { log, clock }: ChannelParts): Channel {
  const api = new DiscordApi(account);
  const gateway = new Gateway({ api, places: new Places(api), log, clock, name: `${account.platform}/${account.account}` });
  const send = async <T>(run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      throw sendTrouble(error);
    }
  };
  return {
    abilities: { dedupes: true, editEveryMs: EDIT_EVERY_MS, typingMs: TYPING_MS, reacts: true, sendsFiles: true },
    listen: (inbound, signal) => gateway.listen(inbound, signal),
    partsOf: (text) => partsFor(text, { kind: "discord", maxLength: MAX_LENGTH }),
    send: (message, signal) =>
      send(async () => ({ id: (await api.ready.channels.createMessage(channelIdOf(message.place), bodyOf(message), { signal })).id })),
    edit: (message, id, signal) =>
      send(async () => {
        const content = message.part?.text ?? "";
        await api.ready.channels.editMessage(channelIdOf(message.place), id, { content, ...HARMLESS }, { signal });
      }),
    typing: (place, signal) => send(() => api.ready.channels.showTyping(channelIdOf(place), { signal })),
    react: (place, messageId, mark, signal) => send(() => react(api, place, messageId, mark, signal)),
    download: (file, maxBytes, signal) => download(api, file, maxBytes, signal),
  };
}

function bodyOf({ key, part, file, answers }: Outbound): CreateMessageOptions {
  return {
    ...(part ? { content: part.text } : {}),
    ...(file ? { files: [{ name: file.name, contentType: file.mediaType, data: file.data as Uint8Array<ArrayBuffer> }] } : {}),
    ...(answers === null ? {} : { message_reference: { message_id: answers, fail_if_not_exists: false } }),
    nonce: sha256(key).slice(0, MAX_NONCE),
    enforce_nonce: true,
    ...HARMLESS,
  };
}

/** One mark at a time: the sign of the new one is set before the others of ours are taken away. */
async function react(api: DiscordApi, place: ChatPlace, messageId: string, mark: Mark | null, signal: AbortSignal): Promise<void> {
  const channelId = channelIdOf(place);
  if (mark !== null) await api.ready.channels.addMessageReaction(channelId, messageId, SIGNS[mark], { signal });
  // What is seen comes first: there is nothing of ours yet.
  if (mark === "seen") return;
  const others = (Object.keys(SIGNS) as Mark[]).filter((other) => (mark === null ? true : other === "seen"));
  for (const other of others)
    await api.ready.channels.deleteOwnMessageReaction(channelId, messageId, SIGNS[other], { signal }).catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
}
