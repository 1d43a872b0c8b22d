import type { ChannelAccount } from "../../../contract/channels.ts";
import { type Channel, ChannelTrouble, type ChatFile, type Outbound, SendTrouble } from "../../../kernel/channel.ts";
import type { ChannelParts } from "../../../kernel/channel-plugin.ts";
import { Failure } from "../../../kernel/failure.ts";
import { readJson } from "../../../kernel/read-json.ts";
import { capped, shortText, unanswered, waitAskedFor } from "../http-calls.ts";
import { messageIn } from "./posted-message.ts";
import { checkSignature, keyOf, signed } from "./signature.ts";

/** Of a file that goes out in one post, before it is written as text. */
const MAX_SENT_FILE_BYTES = 16 * 1_048_576;
const WHOM = "the address of the webhook";

/**
 * A program of the operator's own, by signed posts in both directions as Standard Webhooks describes them: what it posts to us are messages,
 * what we post to `url` are replies. Without `url`, replies are collected over the API.
 */
export function webhookChannel({ account, secret, url }: ChannelAccount, { clock }: ChannelParts): Channel {
  if (!secret) throw new ChannelTrouble("refused", "secret is missing");
  const key = keyOf(secret.reveal());
  const target = url === undefined ? undefined : targetOf(url);
  const common: Channel = {
    abilities: { dedupes: true, reacts: false, sendsFiles: true },
    listen: async (inbound, signal) => {
      if (signal.aborted) return;
      inbound.connected(target?.host ?? account);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    },
    receive: async (request, { take, runOf }) => {
      if (request.method !== "POST") throw new Failure("request.not_found", "there is nothing here");
      const body = new Uint8Array(await request.arrayBuffer());
      const postId = checkSignature(key, request.headers, clock.now(), body);
      const message = messageIn(readJson(body), postId);
      if (message.files?.length && !target)
        throw new Failure("request.malformed", "files: this account has no `url` that they could be fetched from");
      await take([message]);
      return Response.json({ id: message.id, runId: await runOf(message.id) }, { status: 202 });
    },
    partsOf: (text) => (text.trim() === "" ? [] : [{ text, plain: text }]),
    send: async (message, signal) => {
      if (!target) throw new SendTrouble("refused", "this account has no `url` to post replies to");
      const body = bodyOf(message);
      const headers = { "content-type": "application/json", ...signed(key, message.key, clock.now(), body) };
      const response = await fetch(target, { method: "POST", headers, body, redirect: "manual", signal }).catch((error: unknown) => {
        throw unanswered(error, WHOM);
      });
      return { id: await idIn(response, message.key, clock.now()) };
    },
  };
  return target ? { ...common, download: (file, maxBytes, signal) => download(key, target, clock.now(), file, maxBytes, signal) } : common;
}

function targetOf(url: string): URL {
  const target = new URL(url);
  if (target.username || target.password)
    throw new ChannelTrouble("refused", "url must not hold a name or a password: what is posted there is signed");
  return target;
}

function bodyOf({ place, key, part, file, answers }: Outbound): string {
  const { guild, chat, topic, chatType } = place;
  if (file && file.data.length > MAX_SENT_FILE_BYTES)
    throw new SendTrouble("refused", `the file ${file.name} has more than ${MAX_SENT_FILE_BYTES} bytes`);
  return JSON.stringify({
    id: key,
    chat,
    chat_type: chatType,
    guild,
    topic,
    answers,
    text: part?.text ?? null,
    file: file ? { name: file.name, media_type: file.mediaType, data: Buffer.from(file.data).toString("base64") } : null,
  });
}

/** What has the same id as before is shown once, by whoever follows Standard Webhooks: sending it again does no harm. */
async function idIn(response: Response, key: string, now: number): Promise<string> {
  const said = await shortText(response).catch(() => "");
  const { status } = response;
  if (response.ok) return givenId(said) ?? key;
  if (status === 429 || status === 503)
    throw new SendTrouble("later", `${WHOM} answers ${status}`, { ...afterMs(waitAskedFor(response.headers, now)), isWhole: true });
  if (status >= 500 || status === 408) throw new SendTrouble("unclear", `${WHOM} answers ${status}`);
  // It does not know our signature: nothing is wrong with the reply.
  if (status === 401 || status === 403) throw new SendTrouble("refused", `${WHOM} answers ${status}`, { isWhole: true });
  const more = status >= 300 && status < 400 ? ", and redirects are not followed" : "";
  throw new SendTrouble("refused", `${WHOM} answers ${status}${more}`);
}

function afterMs(asked: number | undefined): { readonly afterMs?: number } {
  return asked === undefined ? {} : { afterMs: asked };
}

/** The receiver may say what it calls the message now. */
function givenId(said: string): string | undefined {
  try {
    const { id } = JSON.parse(said);
    return typeof id === "string" && id !== "" && id.length <= 256 ? id : undefined;
  } catch {
    return undefined;
  }
}

/** Asked of the operator's own program: nobody who posts can make us ask anybody else. */
async function download(
  key: Buffer,
  target: URL,
  now: number,
  { ref }: ChatFile,
  maxBytes: number,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const place = new URL(target);
  place.searchParams.set("file", ref);
  const response = await fetch(place, { headers: signed(key, ref, now, ""), redirect: "manual", signal });
  if (response.ok && response.body) return capped(response.body, maxBytes);
  await response.body?.cancel();
  throw new Error(`${WHOM} answers ${response.status} when it is asked for a file`);
}
