import type { Message } from "grammy/types";
import { ChannelTrouble, type ChatFile } from "../../../kernel/channel.ts";
import type { BotApi } from "./bot-api.ts";
import { channelTroubleOf, refusalIn } from "./telegram-trouble.ts";

interface Sent {
  readonly file_id: string;
  readonly file_size?: number;
  readonly file_name?: string;
  readonly mime_type?: string;
}

/** What lies in a message, each thing once. */
export function filesOf(message: Message): ChatFile[] {
  const files: ChatFile[] = [];
  const add = (sent: Sent, name: string, mediaType: string): void => {
    files.push({
      ref: JSON.stringify({ file_id: sent.file_id }),
      name: sent.file_name ?? name,
      mediaType: sent.mime_type ?? mediaType,
      bytes: sent.file_size ?? null,
    });
  };
  const { photo, voice, audio, video, video_note, animation, sticker, document } = message;
  const largest = photo?.toSorted((one, other) => other.width * other.height - one.width * one.height)[0];
  if (largest) add(largest, "photo.jpg", "image/jpeg");
  if (voice) add(voice, "voice.ogg", "audio/ogg");
  if (audio) add(audio, "audio.mp3", "audio/mpeg");
  if (video) add(video, "video.mp4", "video/mp4");
  if (video_note) add(video_note, "video.mp4", "video/mp4");
  if (sticker?.is_animated) add(sticker, "sticker.tgs", "application/x-tgsticker");
  else if (sticker?.is_video) add(sticker, "sticker.webm", "video/webm");
  else if (sticker) add(sticker, "sticker.webp", "image/webp");
  // An animation comes a second time as a document, for clients that know no animations.
  if (animation) add(animation, "animation.mp4", "video/mp4");
  else if (document) add(document, "file", "application/octet-stream");
  return files;
}

/** `refused`: it cannot be had; `cut off`: later perhaps. What goes wrong does not name it: people choose names, and agents are told. */
export async function downloadFile(
  { calls, fileUrl }: BotApi,
  { ref }: ChatFile,
  maxBytes: number,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const { file_id } = JSON.parse(ref) as { file_id: string };
  const file = await calls(signal)
    .getFile(file_id)
    .catch((error: unknown) => {
      const refusal = refusalIn(error);
      throw refusal?.status === 400
        ? new ChannelTrouble("refused", `Telegram does not give it: ${refusal.words}`)
        : channelTroubleOf(error);
    });
  if ((file.file_size ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (file.file_path === undefined) throw new ChannelTrouble("refused", "Telegram does not say where it is");
  const response = await fetch(fileUrl(file.file_path), { redirect: "manual", signal }).catch((error: unknown) => {
    throw channelTroubleOf(error);
  });
  if (!response.ok || !response.body) {
    await response.body?.cancel();
    throw new ChannelTrouble(response.status >= 500 ? "cut off" : "refused", `Telegram answers ${response.status} instead of it`);
  }
  return response.body.pipeThrough(atMost(maxBytes));
}

function atMost(maxBytes: number): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  return new TransformStream({
    transform: (chunk, controller) => {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) controller.error(tooLarge(maxBytes));
      else controller.enqueue(chunk);
    },
  });
}

function tooLarge(maxBytes: number): ChannelTrouble {
  return new ChannelTrouble("refused", `it is larger than ${maxBytes} bytes`);
}
