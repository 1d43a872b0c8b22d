import type { APIAttachment, APIMessage } from "@discordjs/core/http-only";
import { ChannelTrouble, type ChatFile } from "../../../kernel/channel.ts";
import { messageOf } from "../../../kernel/failure.ts";
import { channelTrouble, type DiscordApi, isGone } from "./discord-api.ts";

const ID = /^[0-9]{1,20}$/;

/** Links to files expire within a day: what is kept is where they hang, and a new link is asked for. */
export function filesOf(message: APIMessage): ChatFile[] {
  return attachmentsOf(message).map(({ id, filename, content_type: mediaType, size }) => ({
    ref: [message.channel_id, message.id, id].join("/"),
    name: filename,
    mediaType: mediaType ?? "application/octet-stream",
    bytes: size,
  }));
}

/** Those of a message that is only passed on hang on what is shown of it. */
function attachmentsOf(message: APIMessage): APIAttachment[] {
  return [...message.attachments, ...(message.message_snapshots ?? []).flatMap((snapshot) => snapshot.message.attachments)];
}

/** What hangs on a message, by the link that Discord gives now, and by no other. What goes wrong does not name it: people choose names. */
export async function download(
  api: DiscordApi,
  { ref }: ChatFile,
  maxBytes: number,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const url = await linkOf(api, ref, signal);
  if (url === undefined) throw new ChannelTrouble("refused", "it is not on Discord any more");
  const response = await fetch(url, { signal, redirect: "error" }).catch((error: unknown) => {
    throw new ChannelTrouble("cut off", `it cannot be fetched: ${messageOf(error)}`, { cause: error });
  });
  if (!response.ok || !response.body) {
    await response.body?.cancel();
    throw new ChannelTrouble("cut off", `it cannot be fetched: Discord answers ${response.status}`);
  }
  return response.body.pipeThrough(upTo(maxBytes));
}

async function linkOf(api: DiscordApi, ref: string, signal: AbortSignal): Promise<string | undefined> {
  const [channelId = "", messageId = "", attachmentId = ""] = ref.split("/");
  if (![channelId, messageId, attachmentId].every((id) => ID.test(id))) return undefined;
  try {
    const message = await api.ready.channels.getMessage(channelId, messageId, { signal });
    return attachmentsOf(message).find(({ id }) => id === attachmentId)?.url;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw channelTrouble(error);
  }
}

function upTo(maxBytes: number): TransformStream<Uint8Array, Uint8Array> {
  let seen = 0;
  return new TransformStream({
    transform: (chunk, controller) => {
      seen += chunk.byteLength;
      if (seen > maxBytes) controller.error(new ChannelTrouble("refused", `it is larger than ${maxBytes} bytes`));
      else controller.enqueue(chunk);
    },
  });
}
