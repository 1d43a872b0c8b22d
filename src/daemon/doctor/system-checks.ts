import { createServer } from "node:net";
import { asFailure } from "../../kernel/failure.ts";
import { jailKind } from "../../records/workspaces/jail-kind.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { inspectStore } from "../../store/inspect-store.ts";
import { readDaemonFile } from "../daemon-file.ts";
import { storeInWords } from "../store-in-words.ts";
import { blocking, broken, type Finding, ok, warning } from "./check.ts";

const ANSWER_MS = 2_000;
const JAILS = {
  "proc-handles": "files are held by handles (/proc/self/fd)",
  "nofollow-any": "files are opened with O_NOFOLLOW_ANY",
  none: "files cannot be opened safely on this system, so that no agent can use any",
};

export function jailCheck(): Finding {
  const kind = jailKind();
  if (kind === "none") return broken("jail", JAILS.none, "Mount /proc, or run on Linux or macOS.");
  return ok("jail", `${kind}: ${JAILS[kind]}`);
}

export function versionCheck(): Finding {
  const { node, sqlite } = process.versions;
  const found = `Node ${node}, SQLite ${sqlite}`;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  if (major > 24 && major !== 25) return ok("versions", found);
  if (major === 24 && minor >= 15) return ok("versions", found);
  return blocking("versions", found, "Use Node 24.15 or later, or 26 or later.");
}

export async function storeCheck({ storeLocation }: Settings): Promise<Finding> {
  const where = storeInWords(storeLocation);
  try {
    const { exists, schema, newest } = await inspectStore(storeLocation);
    if (!exists) return ok("store", `${where}: nothing is stored yet`);
    if (schema < newest)
      return warning(
        "store",
        `${where}: schema ${schema} of ${newest}`,
        "The next start brings it up to date; `guildhall backup FILE` first.",
      );
    const beside = schema > newest ? `, by a newer program; this one knows up to ${newest} and works beside it` : "";
    return ok("store", `${where}: it opens, schema ${schema}${beside}`);
  } catch (error) {
    const { message, hint } = asFailure(error);
    return blocking("store", `${where}: ${message}`, hint);
  }
}

/** Free, or taken by the daemon of this very home. */
export async function portCheck({ home, config }: Settings): Promise<Finding> {
  const { host, port } = config.server;
  const running = await runningOn(home);
  if (running !== undefined) return ok("port", `a daemon of this home answers at ${running}`);
  if (port === 0) return ok("port", "any free one is taken");
  const refused = await listenOnce(host, port);
  if (refused === undefined) return ok("port", `${port} on ${host} is free`);
  if (refused === "EADDRINUSE")
    return blocking("port", `${port} on ${host} is taken by another program`, "Stop it, or choose another: server: { port: … }.");
  return blocking("port", `cannot listen on ${host}, port ${port} (${refused})`, "server.host must be an address of this machine.");
}

async function runningOn(home: string): Promise<string | undefined> {
  const address = readDaemonFile(home);
  if (!address) return undefined;
  try {
    const answer = await fetch(`${address.url}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) });
    const { node } = (await answer.json()) as { node?: unknown };
    return node === address.node ? address.url : undefined;
  } catch {
    return undefined;
  }
}

function listenOnce(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  });
}
