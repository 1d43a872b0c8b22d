import { setTimeout as sleep } from "node:timers/promises";
import { AgentsClient } from "../client/agents.ts";
import type { ConfigRevisionList } from "../contract/agents.ts";
import { findRunning } from "./connect.ts";
import type { GlobalOptions } from "./terminal.ts";

/** What became of a change of the config, as far as a daemon goes. */
export interface Applied {
  readonly daemon: "not running" | "applied" | "rejected" | "late" | "reads another file";
  readonly revision: number | null;
}

const PATIENCE_MS = 3_000;
const LOOK_AGAIN_MS = 50;

/** Waits until the home's daemon, if one runs, has taken up the text with this hash. */
export async function untilApplied(
  options: GlobalOptions,
  { hash, file }: { readonly hash: string; readonly file: string },
): Promise<Applied> {
  const running = await findRunning(options);
  if (!running) return { daemon: "not running", revision: null };
  const client = new AgentsClient(running);
  const { configHashAt } = await import("../daemon/local-agents.ts");
  for (const deadline = performance.now() + PATIENCE_MS; ; await sleep(LOOK_AGAIN_MS)) {
    const seen = await client.revisions(5).catch(() => undefined);
    // Whoever has edited the file after us has found what we wrote: a daemon that knows what it says now knows that too.
    const over = seen && (outcomeOf(seen, hash) ?? outcomeOf(seen, configHashAt(options)));
    if (over) return over;
    if (performance.now() < deadline) continue;
    const another = seen !== undefined && seen.current.file !== file;
    return { daemon: another ? "reads another file" : "late", revision: seen?.current.number ?? null };
  }
}

function outcomeOf({ current, revisions }: ConfigRevisionList, hash: string): Applied | undefined {
  if (current.hash === hash) return { daemon: "applied", revision: current.number };
  const [newest] = revisions;
  return newest?.state === "rejected" && newest.hash === hash ? { daemon: "rejected", revision: current.number } : undefined;
}

export function appliedInWords({ daemon, revision }: Applied): string | null {
  switch (daemon) {
    case "not running":
      return null;
    case "applied":
      return `the daemon has taken it up (revision ${revision})`;
    case "rejected":
      return "the daemon has rejected the config; see: guildhall config check";
    case "late":
      return "the daemon has not taken it up yet; see its log";
    case "reads another file":
      return "the running daemon reads another config file, and does not know of this";
  }
}
