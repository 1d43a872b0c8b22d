import { connect, createServer, type Server, type Socket } from "node:net";

export interface TcpProxy {
  readonly port: number;
  /** Called with each piece of data from the client. `cut answer`: the server gets it, the client hears nothing more. `withhold`: the server never gets it. */
  onClientData: (data: Buffer) => "pass" | "cut answer" | "withhold";
  /** Closes every connection that is open now. */
  cutAll(): void;
  /** A silent partition: nothing passes in either direction, nothing is closed, and new connections get no answer. */
  hold(): void;
  /** It is over: what was sent meanwhile arrives late, as a network would send it again. */
  letPass(): void;
  close(): Promise<void>;
}

/** Stands between a client and a server on this machine, and breaks connections at the worst moment. */
export async function tcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isHeld = false;
  const proxy: Omit<TcpProxy, "port"> = {
    onClientData: () => "pass",
    cutAll: () => {
      for (const socket of sockets) socket.destroy();
    },
    hold: () => {
      isHeld = true;
      for (const socket of sockets) socket.pause();
    },
    letPass: () => {
      isHeld = false;
      for (const socket of sockets) socket.resume();
    },
    close: () =>
      new Promise((resolve) => {
        proxy.cutAll();
        server.close(() => resolve());
      }),
  };
  const server: Server = createServer((client) => {
    const upstream = connect(targetPort, "127.0.0.1");
    let silenced = false;
    const end = (): void => {
      client.destroy();
      upstream.destroy();
      for (const socket of [client, upstream]) sockets.delete(socket);
    };
    for (const socket of [client, upstream]) sockets.add(socket);
    client.on("data", (data) => {
      const verdict = handle.onClientData(data);
      if (verdict === "withhold") return;
      silenced ||= verdict === "cut answer";
      upstream.write(data);
    });
    // The server has done what it was asked; the client will never hear of it.
    upstream.on("data", (data) => (silenced ? end() : client.write(data)));
    for (const socket of [client, upstream]) {
      socket.on("error", end);
      socket.on("close", end);
      if (isHeld) socket.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const handle: TcpProxy = Object.assign(proxy, { port: (server.address() as { port: number }).port });
  return handle;
}
