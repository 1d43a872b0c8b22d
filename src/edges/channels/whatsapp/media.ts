import { z } from "zod";
import type { OutboundFile } from "../../../kernel/channel.ts";
import { SendTrouble } from "../../../kernel/channel.ts";
import type { Graph } from "./graph.ts";

const MEGABYTE = 1_048_576;

/** As WhatsApp shows a file. What it takes of each kind, and how large: Meta refuses anything else. */
const KINDS = {
  image: { types: ["image/jpeg", "image/png"], maxBytes: 5 * MEGABYTE },
  audio: { types: ["audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"], maxBytes: 16 * MEGABYTE },
  video: { types: ["video/mp4", "video/3gpp"], maxBytes: 16 * MEGABYTE },
  document: {
    types: [
      "text/plain",
      "application/pdf",
      "application/msword",
      "application/vnd.ms-excel",
      "application/vnd.ms-powerpoint",
      "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
      "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
      "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ],
    maxBytes: 100 * MEGABYTE,
  },
} as const;
type Kind = keyof typeof KINDS;

/** Text by another name, which WhatsApp takes as text only. */
const IS_TEXT = /^(text\/.+|application\/(json|yaml|xml|x-yaml|toml|javascript|.+\+json|.+\+xml))$/;

export interface SentMedia {
  readonly type: Kind;
  readonly content: Readonly<Record<string, string>>;
}

/** Brings a file to WhatsApp. Nobody sees it yet: where this fails, nothing has happened. */
export async function upload(graph: Graph, phoneNumberId: string, file: OutboundFile, signal: AbortSignal): Promise<SentMedia> {
  const [kind, mediaType] = kindOf(file);
  const form = new FormData();
  form.set("messaging_product", "whatsapp");
  form.set("type", mediaType);
  form.set("file", new Blob([new Uint8Array(file.data)], { type: mediaType }), file.name);
  const { id } = z.object({ id: z.string().min(1) }).parse(await graph.post(`${encodeURIComponent(phoneNumberId)}/media`, form, signal));
  return { type: kind, content: kind === "document" ? { id, filename: file.name } : { id } };
}

function kindOf({ name, mediaType, data }: OutboundFile): [kind: Kind, mediaType: string] {
  const bare = mediaType.split(";")[0]?.trim().toLowerCase() ?? "";
  const taken = IS_TEXT.test(bare) ? "text/plain" : bare;
  const kind = (Object.keys(KINDS) as Kind[]).find((one) => (KINDS[one].types as readonly string[]).includes(taken));
  if (!kind) throw new SendTrouble("refused", `WhatsApp does not take files such as ${name} (${bare})`);
  const { maxBytes } = KINDS[kind];
  if (data.length > maxBytes) throw new SendTrouble("refused", `WhatsApp takes files such as ${name} up to ${maxBytes / MEGABYTE} MB`);
  return [kind, taken];
}

const ENDINGS: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "audio/mpeg": "mp3",
  "audio/mp4": "m4a",
  "video/3gpp": "3gp",
  "text/plain": "txt",
};

/** For a file that has no name: most of them do not. */
export function nameFor(kind: string, mediaType: string): string {
  const ending = ENDINGS[mediaType] ?? /^[a-z]+\/([a-z0-9]{1,8})$/.exec(mediaType)?.[1] ?? "bin";
  return `${kind}.${ending}`;
}
