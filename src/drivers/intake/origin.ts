import type { ChatMessage } from "../../kernel/channel.ts";
import type { Origin } from "../../records/sessions/origin.ts";

/** The folder of a workspace where what people send along is put. */
const FOLDER = "inbox";
const MAX_NAME = 80;
const MAX_QUOTED = 4_000;
const MAX_FILES = 20;
/** A name of one or two words and nothing else: there is no room in it for telling a model what to do. */
const HARMLESS_NAME = /^[\p{L}\p{M}\p{N}'._-]{1,24}( [\p{L}\p{M}\p{N}'._-]{1,24})?$/u;

export function originOf(message: ChatMessage): Origin {
  const files = (message.files ?? []).slice(0, MAX_FILES).map((file, index) => ({ ...file, path: pathOf(message.id, index, file.name) }));
  return { messageId: message.messageId, files, isExternal: files.length > 0 || message.quoted !== undefined };
}

/**
 * What the agent is told that somebody has said. In a group it begins with who it was; what is quoted or sent along stands at its end,
 * as what it is.
 */
export function wordsOf(platform: string, message: ChatMessage, origin: Origin): string {
  const { sender, place, quoted, text } = message;
  const lines = [place.chatType === "dm" ? text : `[${speakerOf(platform, sender)}] ${text}`];
  if (quoted) {
    const how = quoted.isForwarded ? "forwarded from somebody else" : "in answer to";
    lines.push(`[${how}: ${JSON.stringify(shortened(quoted.text))}]`);
  }
  for (const { path, mediaType, bytes } of origin.files)
    lines.push(`[file ${path}: ${mediaType.slice(0, 100)}${bytes === null ? "" : `, ${bytes} bytes`}]`);
  return lines.join("\n");
}

function speakerOf(platform: string, { id, name }: ChatMessage["sender"]): string {
  return name !== null && HARMLESS_NAME.test(name) ? `${name} (${platform}:${id})` : `${platform}:${id}`;
}

function shortened(text: string): string {
  return text.length <= MAX_QUOTED ? text : `${text.slice(0, MAX_QUOTED).toWellFormed()}…`;
}

/** Of a name that a stranger has chosen, what is harmless in a path. The event's id keeps two files of one name apart. */
function pathOf(id: string, index: number, name: string): string {
  const plain = (text: string): string => text.normalize("NFC").replaceAll(/[^\p{L}\p{M}\p{N}._-]+/gu, "_");
  const safe = plain(name).replace(/^\.+/, "").slice(-MAX_NAME) || "file";
  return `${FOLDER}/${plain(id).slice(-40)}-${index + 1}-${safe}`;
}
