import type { Address } from "../../deciders/routing/address.ts";
import { sha256 } from "../../kernel/canonical-json.ts";
import type { ChatMessage } from "../../kernel/channel.ts";
import type { Origin } from "../../records/sessions/origin.ts";

/** The folder of a workspace where what people send along is put. */
const FOLDER = "inbox";
const MAX_EVENT_BYTES = 40;
const MAX_NAME_BYTES = 150;
const MAX_QUOTED = 4_000;
const MAX_FILES = 20;
const MAX_SHOWN_ID = 64;
const MEDIA_TYPE = /^[a-z0-9][a-z0-9.+-]{0,60}\/[a-z0-9][a-z0-9.+-]{0,60}$/i;
/** A name of one or two words and nothing else: there is no room in it for telling a model what to do. */
const HARMLESS_NAME = /^[\p{L}\p{M}\p{N}'._-]{1,24}( [\p{L}\p{M}\p{N}'._-]{1,24})?$/u;

export function originOf({ platform, account }: Pick<Address, "platform" | "account">, message: ChatMessage): Origin {
  const event = eventOf(platform, account, message.id);
  const files = (message.files ?? []).slice(0, MAX_FILES).map((file, index) => ({ ...file, path: pathOf(event, index, file.name) }));
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
  for (const { path, mediaType, bytes } of origin.files) {
    const type = MEDIA_TYPE.test(mediaType) ? mediaType : "of unknown type";
    lines.push(`[file ${path}: ${type}${bytes === null ? "" : `, ${bytes} bytes`}]`);
  }
  const more = (message.files?.length ?? 0) - origin.files.length;
  if (more > 0) lines.push(`[and ${more} more; of one message ${MAX_FILES} files are taken]`);
  return lines.join("\n");
}

function speakerOf(platform: string, { id, name }: ChatMessage["sender"]): string {
  // On platforms of a program's own, ids may be anything as well.
  const who = `${platform}:${id.replaceAll(/[^\p{L}\p{N}@._+-]/gu, "_").slice(0, MAX_SHOWN_ID)}`;
  return name !== null && HARMLESS_NAME.test(name) ? `${name} (${who})` : who;
}

function shortened(text: string): string {
  return text.length <= MAX_QUOTED ? text : `${text.slice(0, MAX_QUOTED).toWellFormed()}…`;
}

/** Ids are unique within an account, and what is left of one that is harmless in a path not even there: the hash is what tells two apart. */
function eventOf(platform: string, account: string, id: string): string {
  return `${endOf(plain(id), MAX_EVENT_BYTES)}.${sha256(JSON.stringify([platform, account, id])).slice(0, 8)}`;
}

/** Of a name that a stranger has chosen, what is harmless in a path. */
function pathOf(event: string, index: number, name: string): string {
  return `${FOLDER}/${event}-${index + 1}-${endOf(plain(name).replace(/^\.+/, ""), MAX_NAME_BYTES) || "file"}`;
}

function plain(text: string): string {
  return text
    .toWellFormed()
    .normalize("NFC")
    .replaceAll(/[^\p{L}\p{M}\p{N}._-]+/gu, "_");
}

/** With its ending, by which programs know what it is. File systems count bytes. */
function endOf(text: string, bytes: number): string {
  const characters = [...text];
  let left = bytes;
  const first = characters.findLastIndex((character) => {
    left -= Buffer.byteLength(character);
    return left < 0;
  });
  return characters.slice(first + 1).join("");
}
