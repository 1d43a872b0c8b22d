import { request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { TLSSocket } from "node:tls";

export interface CallToPost {
  readonly contentType: string;
  /** A text, or the pieces of a form with files. */
  readonly body: string | Readable;
  /** Asked when there is a connection and nothing is left to wait for; absent: it may leave whenever that is. */
  readonly isAllowed?: (() => boolean) | undefined;
}

export interface PostedAnswer {
  readonly status: number;
  readonly text: string;
}

/** Until there is a connection: before, nothing has left. */
const CONNECT_MS = 10_000;

/**
 * Posts, and waits for the whole answer; a redirection is an answer. Not by `fetch`, which connects after it was asked, so that a process
 * that is stopped meanwhile would post when it goes on, however much later; and which takes 0.35 ms more of the processor for a call:
 * of a short message, more than everything else that is done to send it.
 */
export async function postCall(url: string, call: CallToPost, signal: AbortSignal): Promise<PostedAnswer> {
  const { contentType, body, isAllowed } = call;
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<PostedAnswer>();
  const fail = (error: unknown): void => reject(signal.aborted ? signal.reason : error);
  const post = url.startsWith("https:") ? requestSecure : requestPlain;
  const length = typeof body === "string" ? { "content-length": Buffer.byteLength(body) } : {};
  const request = post(url, { method: "POST", headers: { "content-type": contentType, ...length }, signal });
  request.on("error", fail);
  request.on("socket", (socket) => {
    const leave = (): void => {
      if (isAllowed?.() === false) request.destroy(new Error("it may not be posted any more"));
      else if (typeof body === "string") request.end(body);
      else pipeline(body, request).catch(fail);
    };
    const event = comingEvent(socket);
    if (!event) return leave();
    const late = setTimeout(() => request.destroy(noConnection()), CONNECT_MS).unref();
    socket.once("close", () => clearTimeout(late));
    socket.once(event, () => {
      clearTimeout(late);
      leave();
    });
  });
  request.on("response", (response) => {
    const pieces: Buffer[] = [];
    response.on("data", (piece: Buffer) => pieces.push(piece));
    response.on("error", fail);
    response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString("utf8") }));
  });
  return promise;
}

function noConnection(): Error {
  return Object.assign(new Error("no connection in time"), { code: "ETIMEDOUT", syscall: "connect" });
}

/** What a socket that is not ready yet says when it is; one that was used before is. */
function comingEvent(socket: Socket & { readonly secureConnecting?: boolean }): string | undefined {
  const isReady = !socket.connecting && socket.secureConnecting !== true;
  if (isReady) return undefined;
  return socket instanceof TLSSocket ? "secureConnect" : "connect";
}
