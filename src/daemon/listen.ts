import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, isIPv6, type Socket } from "node:net";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { ERRORS, type ErrorCode } from "../contract/errors.ts";
import { Failure } from "../kernel/failure.ts";
import { Roster } from "../kernel/roster.ts";
import { limitConnections } from "./connections.ts";

export interface Listening {
  /** Where a program on this machine reaches us. */
  readonly url: string;
  /** What other machines are told: where we listen everywhere, by the name of this machine. */
  readonly announced: string;
  /** Connections are still taken, so that whoever asks is told to go elsewhere; none is kept for another request. */
  drain(): void;
  /** No new connections. What is being answered is answered, as far as that takes no longer than this. */
  close(withinMs: number): Promise<void>;
}

/** Whoever needs longer to send a request is not sending it. */
const TIMES = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 1_000 };
/** A connection on which nothing moves for so long is dead, or its reader does not read. Streams say something every 15 s. */
const STILL_MS = 10 * 60_000;
const CONNECTIONS = { open: 4_096, silent: 1_024 };

/**
 * The adapter's own kind of answer: text that it writes as it is, where it reads a platform's answer as a stream, which takes as long as all the rest of
 * a small request. It gives it away only by replacing the globals, which are put back at once.
 */
export function wholeResponse(): typeof Response {
  const own = { Request: globalThis.Request, Response: globalThis.Response };
  getRequestListener(() => new Response());
  const whole = globalThis.Response;
  Object.assign(globalThis, own);
  return whole;
}

export async function listen(fetch: (request: Request) => Response | Promise<Response>, host: string, port: number): Promise<Listening> {
  const Whole = wholeResponse();
  const isWhole = (response: Response): boolean => response instanceof Whole;
  const answer = async (request: Request, { outgoing }: { readonly outgoing: ServerResponse }): Promise<Response> => {
    const response = await fetch(request);
    if (isWhole(response)) return response;
    const { body } = response;
    if (body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    outgoing.setHeaders(response.headers);
    outgoing.writeHead(response.status);
    outgoing.flushHeaders();
    void sendStream(body, outgoing);
    return RESPONSE_ALREADY_SENT;
  };
  const listener = getRequestListener(answer as Parameters<typeof getRequestListener>[0], {
    // Replacing the globals would change them for the whole process, also where Guildhall is a guest in it.
    overrideGlobalObjects: false,
    errorHandler: () => Response.json(refusal("request.malformed", "this is not a request"), { status: 422 }),
  });
  const server = createServer(TIMES, listener);
  const answering = new Roster<number, ServerResponse>();
  let requests = 0;
  let isDraining = false;
  server.prependListener("request", (_request, response: ServerResponse) => {
    if (isDraining) lastOfItsConnection(response);
    const number = requests++;
    answering.set(number, response);
    response.once("close", () => answering.delete(number));
  });
  server.timeout = STILL_MS;
  limitConnections(server, CONNECTIONS);
  server.on("clientError", refuseBytes);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(listenFailure(error, host, port)));
    server.listen({ host, port }, resolve);
  });
  server.removeAllListeners("error");
  server.on("error", () => {});
  const bound = server.address() as AddressInfo;
  return {
    url: `http://${reachable(host)}:${bound.port}`,
    announced: `http://${isEverywhere(host) ? hostname() : reachable(host)}:${bound.port}`,
    drain: () => {
      isDraining = true;
      for (const response of answering.values()) lastOfItsConnection(response);
      server.closeIdleConnections();
    },
    close: async (withinMs) => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const done = new AbortController();
      await Promise.race([closed, sleep(withinMs, undefined, { signal: done.signal, ref: false }).catch(() => {})]);
      done.abort();
      server.closeAllConnections();
    },
  };
}

/** The adapter would chain a promise to every piece, and keep all of them as long as the stream is open: for days. */
async function sendStream(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  const reader = body.getReader();
  let wakeUp = (): void => {};
  const closed = (): void => {
    wakeUp();
    reader.cancel().catch(() => {});
  };
  outgoing.on("close", closed);
  outgoing.on("drain", () => wakeUp());
  // It may have left before there was anything to send.
  if (outgoing.closed) closed();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || outgoing.closed) break;
      if (!outgoing.write(value))
        await new Promise<void>((resolve) => {
          wakeUp = resolve;
          if (outgoing.closed) resolve();
        });
    }
    outgoing.off("close", closed);
    outgoing.end();
  } catch {
    // Whoever reads must not take it for the end.
    outgoing.destroy();
  }
}

/** A client that keeps its connection would send its next request here. */
function lastOfItsConnection(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader("connection", "close");
}

/** What the parser of HTTP cannot read never becomes a request, but gets an answer of the common shape. */
function refuseBytes(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [code, message]: [ErrorCode, string] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? ["request.too_large", "the headers are too large"]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? ["request.malformed", "the request did not come in time"]
        : ["request.malformed", "this is not HTTP"];
  const body = JSON.stringify(refusal(code, message));
  const head = `HTTP/1.1 ${ERRORS[code].status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`;
  // A client that does not close its side would otherwise stay.
  socket.end(`${head}\r\nConnection: close\r\n\r\n${body}`, () => socket.destroy());
}

function refusal(code: ErrorCode, message: string): unknown {
  const { hint, retry } = ERRORS[code];
  return { error: { code, message, hint, retry, details: {} } };
}

function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return isIPv6(host) ? `[${host}]` : host;
}

function listenFailure(error: NodeJS.ErrnoException, host: string, port: number): Failure {
  if (error.code === "EADDRINUSE")
    return new Failure("daemon.port_taken", `port ${port} on ${host} is taken by another program`, { cause: error });
  return new Failure("daemon.cannot_listen", `cannot listen on ${host}, port ${port} (${error.code})`, { cause: error });
}
