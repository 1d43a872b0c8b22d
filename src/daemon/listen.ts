import type { Server } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { Failure } from "../kernel/failure.ts";

export interface Listening {
  /** Where a program on this machine reaches us. */
  readonly url: string;
  /** No new connections; open ones go on. */
  refuseNew(): void;
  closeAll(): void;
}

export async function listen(fetch: (request: Request) => Response | Promise<Response>, host: string, port: number): Promise<Listening> {
  // Replacing the globals would change them for the whole process, also where Guildhall is a guest in it.
  const server = createAdaptorServer({ fetch, overrideGlobalObjects: false }) as Server;
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
