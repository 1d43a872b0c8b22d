import { setImmediate as othersTurn } from "node:timers/promises";
import type { FileToSend } from "../../../acts/send-message.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { Redact } from "../../../kernel/redact.ts";
import type { Workspace } from "../../../records/workspaces/workspace.ts";
import { imageType } from "../files/image-of.ts";
import { labelsOf } from "../files/secret-files.ts";

/** What platforms take, or most of them. */
const MAX_FILE_BYTES = 20 * 1024 * 1024;
/** All of them are in memory, and then in one transaction. */
const MAX_BYTES = 50 * 1024 * 1024;
const PART = 8 * 1024 * 1024;
/** As much as is looked through at once; each look begins a little before the end of the last, where a secret may have been cut. */
const LOOKED_AT = 512 * 1024;
const OVERLAP = 16 * 1024;

/** By the ending of the name, where the bytes do not say; players and viewers ask for no more. */
const TYPES: Readonly<Record<string, string>> = {
  csv: "text/csv",
  html: "text/html",
  json: "application/json",
  m4a: "audio/mp4",
  md: "text/markdown",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  ogg: "audio/ogg",
  pdf: "application/pdf",
  svg: "image/svg+xml",
  txt: "text/plain",
  wav: "audio/wav",
  webm: "video/webm",
  xml: "application/xml",
  zip: "application/zip",
};

/** Read now: what the agent does with them afterwards changes nothing about what is sent. */
export async function filesToSend(workspace: Workspace, paths: readonly string[]): Promise<FileToSend[]> {
  const files: FileToSend[] = [];
  let left = MAX_BYTES;
  for (const path of paths) {
    const bytes = await wholeOf(workspace, path, left);
    left -= bytes.length;
    const name = path.split("/").at(-1) as string;
    files.push({ name, mediaType: imageType(bytes) ?? TYPES[endingOf(name)] ?? "application/octet-stream", bytes });
  }
  return files;
}

/** By its name, by what keys look like, or since a secret of the config stands in it: a program of the agent may have written it there. */
export async function holdsSecret({ name, bytes }: FileToSend, redact: Redact): Promise<boolean> {
  for (let at = 0; at === 0 || at < bytes.length; at += LOOKED_AT) {
    const words = Buffer.from(bytes.subarray(Math.max(0, at - OVERLAP), at + LOOKED_AT)).toString();
    if (labelsOf(name, words).labels !== undefined || redact(words) !== words) return true;
    await othersTurn();
  }
  return false;
}

async function wholeOf(workspace: Workspace, path: string, left: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let at = 0;
  for (;;) {
    const { bytes, more, size } = await workspace.read(path, { offset: at, limit: PART });
    at += bytes.length;
    if (size > MAX_FILE_BYTES || at > MAX_FILE_BYTES)
      throw new Failure("workspace.too_large", `${path} has ${size} bytes; a file that is sent has at most ${MAX_FILE_BYTES}`, {
        hint: "Make it smaller, or cut it.",
      });
    if (size > left || at > left)
      throw new Failure("workspace.too_large", `the files have more than ${MAX_BYTES} bytes together`, { hint: "Send them one by one." });
    parts.push(bytes);
    if (!more || bytes.length === 0) return parts.length === 1 ? bytes : Buffer.concat(parts);
  }
}

function endingOf(name: string): string {
  return name.includes(".") ? (name.split(".").at(-1) as string).toLowerCase() : "";
}
