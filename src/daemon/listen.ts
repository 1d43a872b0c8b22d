import { createServer } from "node:http";
import { type AddressInfo, isIPv6, type Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { ERRORS, type ErrorCode } from "../contract/errors.ts";
import { Failure } from "../kernel/failure.ts";
import { limitConnections } from "./connections.ts";

export interface Listening {
  /** Where a program on this machine reaches us. */
  readonly url: string;
  /** No new connections; open ones go on. */
  refuseNew(): void;
  closeAll(): void;
}

/** Whoever needs longer to send a request is not sending it. */
const TIMES = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 1_000 };
/** A connection on which nothing moves for so long is dead, or its reader does not read. Streams say something every 15 s. */
const STILL_MS = 10 * 60_000;
const CONNECTIONS = { open: 4_096, silent: 1_024 };

export async function listen(fetch: (request: Request) => Response | Promise<Response>, host: string, port: number): Promise<Listening> {
  const listener = getRequestListener(fetch, {
    // Replacing the globals would change them for the whole process, also where Guildhall is a guest in it.
    overrideGlobalObjects: false,
    errorHandler: () => Response.json(refusal("request.malformed", "this is not a request"), { status: 422 }),
  });
  const server = createServer(TIMES, listener);
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
    refuseNew: () => void server.close(),
    closeAll: () => server.closeAllConnections(),
  };
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
