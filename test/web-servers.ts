import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Web servers on this machine, and what each was asked. */
export class WebServers {
  readonly #servers: Server[] = [];

  async start(
    answer: Answer,
    address = "127.0.0.1",
  ): Promise<{ readonly port: number; readonly asked: string[]; readonly connections: () => number }> {
    const asked: string[] = [];
    let connections = 0;
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      answer(request, response);
    });
    server.on("connection", () => connections++);
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    return { port: (server.address() as AddressInfo).port, asked, connections: () => connections };
  }

  async stop(): Promise<void> {
    for (const server of this.#servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }
}
