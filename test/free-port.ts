import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

// Below what systems give to outgoing connections: from 32,768 on with Linux, from 16,000 on with gVisor, from 49,152 on elsewhere.
const FIRST = 10_000;
const PORTS = 6_000;

/** Free now, and still free when its server comes back: no outgoing connection is given it, and no other test until this process has ended. */
export async function freePort(): Promise<number> {
  while (true) {
    const port = FIRST + Math.floor(Math.random() * PORTS);
    if ((await isClaimed(port)) && (await isFree(port))) return port;
  }
}

/** By the UDP port of the same number, which nothing else here uses: it is held until the process ends, however it ends. */
async function isClaimed(port: number): Promise<boolean> {
  const claim = createSocket("udp4");
  try {
    claim.bind({ port, address: "127.0.0.1", exclusive: true });
    await once(claim, "listening");
    claim.unref();
    return true;
  } catch {
    claim.close();
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
    server.close();
    await once(server, "close");
    return true;
  } catch {
    return false;
  }
}
