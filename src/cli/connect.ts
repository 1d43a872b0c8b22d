import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../client/api-client.ts";
import { ClientError } from "../client/client-error.ts";
import type { GlobalOptions } from "./terminal.ts";

export interface Connection {
  readonly client: ApiClient;
  /** True: the daemon is ours, and ends with us. */
  readonly isPrivate: boolean;
  close(): Promise<void>;
}

const PATIENCE_MS = 12_000;
const LOOK_AGAIN_MS = 100;

/** The home's daemon where one answers, else a private one. Between two commands that start at once, the later one finds the earlier one's. */
export async function connect(options: GlobalOptions): Promise<Connection> {
  for (const deadline = performance.now() + PATIENCE_MS; ; ) {
    const running = await findRunning(options);
    if (running) return { client: running, isPrivate: false, close: async () => {} };
    try {
      return await startPrivate(options);
    } catch (error) {
      // Somebody has the home and does not answer yet, or does not answer any more.
      if ((error as { code?: unknown }).code !== "daemon.already_running" || performance.now() > deadline) throw error;
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

/** The home's daemon, which must run: as the identity of $GUILDHALL_TOKEN, else as the operator. */
export async function connectRunning(options: GlobalOptions): Promise<ApiClient> {
  const running = await findRunning(options);
  if (!running) throw new ClientError("daemon.not_running", "no daemon runs on this home");
  const token = process.env.GUILDHALL_TOKEN;
  return token ? new ApiClient(running.url, token) : running;
}

/** Undefined where none answers. */
export async function findRunning(options: GlobalOptions): Promise<ApiClient | undefined> {
  const { findDaemon } = await import("../daemon/find-daemon.ts");
  const found = findDaemon(options);
  if (!found) return undefined;
  const client = new ApiClient(found.address.url, found.token);
  // A file that a killed daemon left behind may point at a port that is somebody else's by now.
  const health = await client.health().catch(() => undefined);
  return health?.node === found.address.node ? client : undefined;
}

/** It ends with us, soon: whoever writes from a platform waits for a daemon that stays. */
async function startPrivate(options: GlobalOptions): Promise<Connection> {
  const { startDaemon } = await import("../daemon/daemon.ts");
  const daemon = await startDaemon({ ...options, host: "127.0.0.1", port: 0, logLevel: "error", listens: false });
  return { client: new ApiClient(daemon.url, daemon.operatorToken), isPrivate: true, close: () => daemon.stop() };
}
