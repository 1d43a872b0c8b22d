import { createServer } from "node:net";

/** Below the ports that the system gives to outgoing connections, so that it is still free when its server comes back. */
export async function freePort(): Promise<number> {
  while (true) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    const free = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
