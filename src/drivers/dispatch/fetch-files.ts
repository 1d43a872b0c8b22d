import { imageType } from "../../abilities/tools/files/image-of.ts";
import type { Address } from "../../deciders/routing/address.ts";
import { sha256 } from "../../kernel/canonical-json.ts";
import type { ChatFile } from "../../kernel/channel.ts";
import { isFailure, messageOf } from "../../kernel/failure.ts";
import { firstOf } from "../../kernel/first-of.ts";
import type { Image, Model } from "../../kernel/model.ts";
import type { ContextPart, StoredContext, ToldImage } from "../../records/journal/contexts.ts";
import type { Workspace } from "../../records/workspaces/workspace.ts";
import type { Workspaces } from "../../records/workspaces/workspaces.ts";
import type { Enclosed, TurnFacts } from "../../turns/open-turn.ts";
import type { Sender } from "./deliver-reply.ts";

/** What it takes to have the files that people send along. */
export interface FileParts {
  /** Undefined: there is no such account any more. */
  senderOf(address: Address): Promise<Pick<Sender, "channel" | "account"> | undefined>;
  workspaces(): Promise<Workspaces>;
  /** For all files of one message; and a second more for each megabyte that one may have. */
  readonly fetchMs: number;
}

/** What came with the message of a turn. */
export interface Enclosure extends Enclosed {
  /** What the agent is told of it. */
  readonly told: readonly ContextPart[];
  /** To be kept with what the turn is told. */
  readonly images: readonly ToldImage[];
}

const NOTHING: Enclosure = { told: [], images: [], shown: [], gone: [] };
const FETCH_MS_PER_MB = 1_000;
const MEGABYTE = 1_048_576;
const MAX_IMAGES = 8;
/** Providers take 5 MB of an image in base64, and 20 to 30 of a request. */
const MAX_IMAGE_BYTES = 3_700_000;
const MAX_IMAGES_BYTES = 14_000_000;
const MAX_PROBLEM = 200;

/**
 * Puts what came with the message into the agent's workspace, where it is not there yet, and looks which of it the model can see. What
 * cannot be had is told to the agent and keeps no turn from being taken. `kept`: an attempt before has told the model of it already.
 */
export async function fetchFiles(
  parts: FileParts | undefined,
  { run, agent, revision }: Pick<TurnFacts, "run" | "agent" | "revision">,
  { seesImages }: Pick<Model, "seesImages">,
  kept: Pick<StoredContext, "images"> | null,
  signal: AbortSignal,
): Promise<Enclosure> {
  const files = run.origin?.files ?? [];
  if (files.length === 0) return NOTHING;
  const problems: string[] = [];
  const arrived: string[] = [];
  let workspace: Workspace | undefined;
  try {
    workspace = (await parts?.workspaces())?.workspace(agent, run.address, { configFile: revision.settings.configFile });
  } catch (error) {
    problems.push(`There is no place for files: ${inShort(error)}.`);
  }
  if (workspace && parts) {
    const fetch = await fetching(parts, run.address, workspace, signal);
    try {
      for (const file of files) {
        const problem = await fetch.one(file);
        signal.throwIfAborted();
        if (problem === null) arrived.push(file.path);
        else problems.push(`${file.path} is not there: ${problem}.`);
      }
    } finally {
      fetch.over();
    }
  }
  if (kept) return { ...NOTHING, ...(await seenBefore(workspace, kept.images ?? [])) };
  const seen = workspace && seesImages ? await imagesIn(workspace, arrived) : { ...NOTHING, hidden: [] };
  const words = [...problems, ...seen.hidden];
  const told: ContextPart[] =
    words.length === 0 ? [] : [{ name: "files", text: `Of what was sent along: ${words.join(" ")}`, fleeting: true }];
  return { told, images: seen.images, shown: seen.shown, gone: [] };
}

interface Fetching {
  /** Answers why it is not there; null: it is. */
  one(file: ChatFile & { readonly path: string }): Promise<string | null>;
  over(): void;
}

async function fetching(parts: FileParts, address: Address, workspace: Workspace, lost: AbortSignal): Promise<Fetching> {
  const sender = await parts.senderOf(address).catch((error: unknown) => inShort(error));
  const most = typeof sender === "object" ? sender.account.maxFileBytes : 0;
  const ending = firstOf([lost], parts.fetchMs + (most / MEGABYTE) * FETCH_MS_PER_MB);
  const one = async (file: ChatFile & { readonly path: string }): Promise<string | null> => {
    const there = await workspace.stat(file.path).catch((error: unknown) => {
      if (isFailure(error, "workspace.not_found")) return null;
      throw error;
    });
    if (there) return there.kind === "file" ? null : "something else has its name";
    if (typeof sender === "string") return `its channel cannot be opened: ${sender}`;
    if (!sender) return `the account ${address.platform}/${address.account} is not in the config any more`;
    const { channel } = sender;
    if (!channel.download) return `files cannot be fetched from ${address.platform}`;
    if (file.bytes !== null && file.bytes > most) return tooLarge(most);
    const stream = await unlessOver(channel.download(file, most, ending.signal), ending.signal);
    await workspace.receive(file.path, piecesOf(stream, ending.signal), most);
    return null;
  };
  return {
    one: (file) =>
      one(file).catch((error: unknown) => {
        if (ending.isTimeUp()) return "it did not come in time";
        return isFailure(error, "workspace.too_large") ? tooLarge(most) : inShort(error);
      }),
    over: () => ending.over(),
  };
}

function tooLarge(most: number): string {
  return `it is larger than ${most / MEGABYTE} MB, which is the most that is taken in (max_file_mb)`;
}

/** A stream may come after nobody waits for it any more. */
async function unlessOver(opening: Promise<ReadableStream<Uint8Array>>, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  try {
    return await Promise.race([opening, over(signal)]);
  } catch (error) {
    void opening.then((stream) => stream.cancel()).catch(() => {});
    throw error;
  }
}

async function* piecesOf(stream: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  const ended = over(signal);
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), ended]);
      if (done) return;
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Whoever downloads may not listen to the signal. */
function over(signal: AbortSignal): Promise<never> {
  const ended = new Promise<never>((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  ended.catch(() => {});
  return ended;
}

/** By their first bytes: what the platform says of a file is what its sender has said. `hidden`: images that are not shown, and why. */
async function imagesIn(
  workspace: Workspace,
  paths: readonly string[],
): Promise<Pick<Enclosure, "images" | "shown"> & { readonly hidden: readonly string[] }> {
  const images: ToldImage[] = [];
  const shown: Image[] = [];
  const hidden: string[] = [];
  let left = MAX_IMAGES_BYTES;
  for (const path of paths) {
    const first = await workspace.read(path, { limit: 16 }).catch(() => null);
    const mediaType = first ? imageType(first.bytes) : undefined;
    if (!first || mediaType === undefined) continue;
    if (first.size > MAX_IMAGE_BYTES || first.size > left) hidden.push(`The image ${path} is too large to be shown (${first.size} bytes).`);
    else if (shown.length === MAX_IMAGES) hidden.push(`The image ${path} is not shown: ${MAX_IMAGES} are, and no more.`);
    else {
      const bytes = await wholeOf(workspace, path);
      if (!bytes) continue;
      images.push({ path, mediaType, hash: sha256(bytes) });
      shown.push(imageOf(mediaType, bytes));
      left -= bytes.length;
    }
  }
  return { images, shown, hidden };
}

/** What the model was shown, and nothing else. */
async function seenBefore(workspace: Workspace | undefined, images: readonly ToldImage[]): Promise<Enclosed> {
  const shown: Image[] = [];
  const gone: string[] = [];
  for (const { path, mediaType, hash } of images) {
    const bytes = workspace ? await wholeOf(workspace, path) : null;
    if (bytes && sha256(bytes) === hash) shown.push(imageOf(mediaType, bytes));
    else gone.push(path);
  }
  return { shown, gone };
}

async function wholeOf(workspace: Workspace, path: string): Promise<Uint8Array | null> {
  const read = await workspace.read(path, { limit: MAX_IMAGE_BYTES }).catch(() => null);
  return read === null || read.more ? null : read.bytes;
}

function imageOf(mediaType: string, bytes: Uint8Array): Image {
  return { mediaType, data: Buffer.from(bytes).toString("base64") };
}

/** Words of a platform or of the system: one line, and not many. */
function inShort(error: unknown): string {
  return messageOf(error)
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .slice(0, MAX_PROBLEM)
    .toWellFormed();
}
