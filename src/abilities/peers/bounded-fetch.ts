import type { Secret } from "../../contract/secret.ts";
import { PeerTrouble } from "./peer-trouble.ts";

const MEGABYTE = 1024 * 1024;
/** Of one answer, and of all events of a stream together. */
const ANSWER_BYTES = 8 * MEGABYTE;
const STREAM_BYTES = 64 * MEGABYTE;
/** What others answer to everybody at the moment: asking again may help. */
const BUSY = [408, 425, 429];

/**
 * Asks one origin and no other, with its token. A card may name any address: the token would go there, and whatever this machine reaches could
 * be asked through us. So also a redirect is no answer.
 */
export function boundedFetch(origin: string, token: Secret | undefined): typeof fetch {
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== origin)
      throw new PeerTrouble("refused", `its card points to ${url.origin}, and the config names ${origin}; nothing is sent there`);
    const headers = new Headers(init.headers);
    if (token) headers.set("authorization", `Bearer ${token.reveal()}`);
    const response = await asked(url, { ...init, headers, redirect: "manual" });
    if (response.status >= 300 && response.status < 400)
      throw new PeerTrouble("refused", `it redirects to another address (${response.status})`);
    if (response.status === 401 || response.status === 403)
      throw new PeerTrouble("refused", `it does not accept our token (${response.status})`);
    if (response.status >= 500 || BUSY.includes(response.status)) throw new PeerTrouble("lost", `it answers ${response.status}`);
    if (response.body === null) return response;
    const isStream = response.headers.get("content-type")?.includes("text/event-stream") ?? false;
    return new Response(response.body.pipeThrough(limited(isStream ? STREAM_BYTES : ANSWER_BYTES)), response);
  };
}

async function asked(url: URL, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    throw new PeerTrouble("lost", `${url.origin} does not answer: ${wordsOf(error)}`, { cause: error });
  }
}

/** The reason behind "fetch failed". */
function wordsOf(error: unknown): string {
  const { message, cause, name } = error as Error & { cause?: { code?: string; message?: string } };
  if (name === "TimeoutError") return "it takes too long";
  return cause?.code ?? (cause?.message || message);
}

function limited(most: number): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  return new TransformStream({
    transform: (piece, controller) => {
      size += piece.length;
      if (size > most) controller.error(new PeerTrouble("refused", `it sends more than ${most / MEGABYTE} MB`));
      else controller.enqueue(piece);
    },
  });
}
