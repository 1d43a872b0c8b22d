import type { Secret } from "../../../contract/secret.ts";

/** Of one answer, or of one event in a stream of them. */
const BYTES_AT_MOST = 8 * 1024 * 1024;
const NEWLINE = 10;
const RETURN = 13;

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** Sends the server's headers with every request, and reads no more of an answer than a message may hold. */
export function boundedFetch(headers: Readonly<Record<string, Secret>>, more: Readonly<Record<string, string>>): Fetch {
  return async (url, init = {}) => {
    const all = new Headers(init.headers);
    for (const [name, value] of Object.entries(more)) all.set(name, value);
    for (const [name, secret] of Object.entries(headers)) all.set(name, secret.reveal());
    const response = await fetch(url, { ...init, headers: all });
    if (response.body === null) return response;
    const isStream = response.headers.get("content-type")?.includes("text/event-stream") ?? false;
    // A response that is made anew has no address, and nobody here asks for it.
    return new Response(response.body.pipeThrough(limited(isStream)), response);
  };
}

function limited(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  let last = 0;
  return new TransformStream({
    transform: (piece, controller) => {
      for (const byte of isStream ? piece : []) {
        size++;
        // An empty line ends an event.
        if (byte === NEWLINE && last === NEWLINE) size = 0;
        if (byte !== RETURN) last = byte;
      }
      if (!isStream) size += piece.length;
      if (size > BYTES_AT_MOST) controller.error(new Error(`it sent more than ${BYTES_AT_MOST / 1024 / 1024} MB at once`));
      else controller.enqueue(piece);
    },
  });
}

/** An address without the user and password in it, and the header that says the same. */
export function withoutPassword(address: string): { readonly url: URL; readonly headers: Readonly<Record<string, string>> } {
  const url = new URL(address);
  if (url.username === "" && url.password === "") return { url, headers: {} };
  const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = "";
  url.password = "";
  return { url, headers: { authorization: `Basic ${Buffer.from(pair).toString("base64")}` } };
}
