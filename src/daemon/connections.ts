import type { Server } from "node:http";
import type { Socket } from "node:net";

export interface ConnectionLimits {
  readonly open: number;
  /** Of those, how many may be there without ever having sent a whole request. */
  readonly silent: number;
}

/**
 * Bounds what connections cost. Whoever opens them and says nothing, or half of something, must not keep others out: when there are
 * too many, the oldest of the silent ones goes. An honest client has sent its request long before it is the oldest.
 */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  // Sets remember their order: the oldest is the first.
  const silent = new Set<Socket>();
  const idle = new Set<Socket>();
  const busy = new Map<Socket, number>();

  server.on("connection", (socket: Socket) => {
    if (silent.size >= limits.silent) drop(silent);
    if (silent.size + idle.size + busy.size >= limits.open && !drop(silent) && !drop(idle)) {
      socket.destroy();
      return;
    }
    silent.add(socket);
    socket.once("close", () => {
      silent.delete(socket);
      idle.delete(socket);
      busy.delete(socket);
    });
  });

  server.prependListener("request", ({ socket }, response) => {
    silent.delete(socket);
    idle.delete(socket);
    busy.set(socket, (busy.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const left = (busy.get(socket) ?? 1) - 1;
      if (left > 0) busy.set(socket, left);
      else if (busy.delete(socket) && !socket.destroyed) idle.add(socket);
    });
  });
}

function drop(sockets: Set<Socket>): boolean {
  const [oldest] = sockets;
  if (!oldest) return false;
  sockets.delete(oldest);
  oldest.destroy();
  return true;
}
