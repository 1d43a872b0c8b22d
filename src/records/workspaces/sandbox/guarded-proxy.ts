import { lookup } from "node:dns/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { BlockList, connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { Duplex } from "node:stream";
import { isPublicAddress } from "../../../kernel/public-address.ts";
import { Turnstile } from "../turnstile.ts";

const MAX_CONNECTIONS = 64;
const MAX_HOSTS = 50;
const CONNECT_MS = 15_000;
const IDLE_MS = 120_000;
/** Between two machines only; and what is meant for us. */
const HOP = ["connection", "proxy-connection", "proxy-authorization", "proxy-authenticate", "keep-alive", "te", "trailer", "upgrade"];

export interface GuardedProxy {
  /** Hosts that were asked for, let through or not. */
  readonly hosts: ReadonlySet<string>;
  close(): Promise<void>;
}

/** How names are looked up, and which addresses may be reached; others only in tests. */
export interface GuardRules {
  resolve(host: string): Promise<readonly string[]>;
  mayReach(address: string): boolean;
}

export const PUBLIC_ONLY: GuardRules = {
  resolve: async (host) => (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address),
  mayReach: (address) => mayReach(address, networkInterfaces()),
};

/** A machine with a public address of its own could otherwise be asked by it, and the same one can be written in many ways. */
export function mayReach(address: string, interfaces: ReturnType<typeof networkInterfaces>): boolean {
  if (!isPublicAddress(address)) return false;
  const own = new BlockList();
  for (const { address: one, family } of Object.values(interfaces).flatMap((list) => list ?? []))
    own.addAddress(one, family === "IPv6" ? "ipv6" : "ipv4");
  return !own.check(address, address.includes(":") ? "ipv6" : "ipv4");
}

class Refused extends Error {}

/**
 * A proxy for one sandbox, on a socket of its own: the only way out there is. Names are looked up here, and the address that was looked at is
 * the one that is connected to.
 */
export async function guardedProxy(socketPath: string, rules: GuardRules): Promise<GuardedProxy> {
  const hosts = new Set<string>();
  // The system looks up few names at a time, and slow ones would be in the way of everybody's, the models' included.
  const lookups = new Turnstile(1);
  let isClosed = false;
  const open = new Set<Duplex>();
  const keep = <Stream extends Duplex>(stream: Stream): Stream => {
    open.add(stream);
    stream.on("close", () => open.delete(stream));
    stream.on("error", () => stream.destroy());
    return stream;
  };
  const addressOf = async (host: string, port: number): Promise<string> => {
    if (hosts.size < MAX_HOSTS) hosts.add(`${host.slice(0, 253)}:${port}`);
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Refused("the address has no port");
    const addresses = await lookups.pass(() => (isClosed ? Promise.resolve([]) : rules.resolve(host).catch(() => [])));
    if (addresses.length === 0) throw new Refused(`${host} is not known`);
    const address = addresses.find((one) => rules.mayReach(one));
    if (address === undefined) throw new Refused(`${host} is not on the public internet; programs in the sandbox reach nothing else`);
    return address;
  };
  const tunnel = async (asked: IncomingMessage, client: Duplex, first: Uint8Array): Promise<void> => {
    keep(client);
    try {
      const { host, port } = authorityOf(asked.url ?? "");
      const far = keep(await reached(await addressOf(host, port), port));
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      far.write(first);
      far.pipe(client).pipe(far);
      for (const [one, other] of [[far, client] as const, [client, far] as const]) one.on("close", () => other.destroy());
    } catch (error) {
      client.end(
        `HTTP/1.1 ${error instanceof Refused ? "403 Forbidden" : "502 Bad Gateway"}\r\ncontent-type: text/plain\r\n\r\n${wordsOf(error)}\n`,
      );
    }
  };
  const forward = async (asked: IncomingMessage, answer: ServerResponse): Promise<void> => {
    try {
      const url = URL.parse(asked.url ?? "");
      if (url === null) throw new Refused("this is a proxy: expected http://<host>/…");
      if (url.protocol !== "http:") throw new Refused("only http:// is asked for directly; everything else by CONNECT");
      const port = Number(url.port || 80);
      const host = url.hostname.replace(/^\[|\]$/g, "");
      const address = await addressOf(host, port);
      const headers = { ...Object.fromEntries(Object.entries(asked.headers).filter(([name]) => !HOP.includes(name))), host: url.host };
      const far = request({
        host: address,
        port,
        method: asked.method,
        path: `${url.pathname}${url.search}`,
        headers,
        agent: false,
        timeout: IDLE_MS,
      });
      far.on("socket", keep);
      far.on("timeout", () => far.destroy());
      far.on("error", () => far.destroy());
      // However it ended: a program that waits for an answer is told.
      far.on("close", () => {
        if (!answer.headersSent) answer.writeHead(502).end("the host did not answer\n");
      });
      far.on("response", (reply) => {
        const status = reply.statusCode ?? 0;
        // Strangers may send any three digits; Node's own server throws at these, and nobody would catch it.
        if (status < 200) return void far.destroy();
        const kept = Object.entries(reply.headers).filter(([name]) => !HOP.includes(name));
        answer.writeHead(status, Object.fromEntries(kept));
        reply.pipe(answer);
        reply.on("close", () => {
          if (!reply.complete) answer.destroy();
        });
      });
      asked.pipe(far);
      answer.on("close", () => far.destroy());
    } catch (error) {
      answer.writeHead(error instanceof Refused ? 403 : 400, { "content-type": "text/plain" }).end(`${wordsOf(error)}\n`);
    }
  };
  const server = createServer((asked, answer) => void forward(asked, answer));
  server.maxConnections = MAX_CONNECTIONS;
  server.on("connect", (asked, client, first) => void tunnel(asked, client, first));
  server.on("connection", keep);
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(socketPath, resolve));
  return {
    hosts,
    close: () => {
      isClosed = true;
      for (const stream of open) stream.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function authorityOf(written: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/@\s]+)):(\d{1,5})$/.exec(written) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) throw new Refused("expected <host>:<port>");
  return { host, port: Number(port) };
}

function reached(address: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, timeout: CONNECT_MS });
    socket.once("connect", () => {
      socket.setTimeout(IDLE_MS, () => socket.destroy());
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("timeout", () => socket.destroy(new Error("timed out")));
    socket.once("error", reject);
  });
}

function wordsOf(error: unknown): string {
  return error instanceof Refused ? error.message : "the host did not answer";
}
