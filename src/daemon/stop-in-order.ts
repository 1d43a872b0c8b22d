import { setTimeout as sleep } from "node:timers/promises";
import type { Dispatcher } from "../drivers/dispatch/dispatcher.ts";
import type { Upkeep } from "../drivers/dispatch/upkeep.ts";
import type { ChannelHub } from "../edges/channels/channel-hub.ts";
import { asFailure } from "../kernel/failure.ts";
import type { Log } from "../kernel/log.ts";
import type { Presence } from "./presence.ts";
import type { Readiness } from "./readiness.ts";

export interface StoppingParts {
  readonly readiness: Readiness;
  readonly presence: Presence;
  readonly upkeep: Upkeep;
  readonly channels: ChannelHub;
  readonly dispatchers: readonly Dispatcher[];
  readonly log: Log;
  /** Whoever asks from now on is refused. */
  refuse(): void;
  /** Everything has ended that was begun here. */
  over(): Promise<void>;
}

const GRACE_MS = 5_000;
const STOP_MS = 8_000;

/**
 * Lets go of everything, in time.
 *
 *   proxies are told → nothing new is begun, and the others are told → what runs gets its grace, then goes back into the queue, for any node to go on with →
 *   whoever still waits here is told so → gone
 *
 * Nothing of it waits for anything else: an account that is slow to close keeps no turn from being handed over.
 */
export async function stopInOrder(parts: StoppingParts): Promise<void> {
  const { log, readiness } = parts;
  await readiness.leave();
  const late = sleep(STOP_MS, "late", { ref: false });
  const outcome = await Promise.race([orderly(parts).catch((error: unknown) => asFailure(error).message), late]);
  if (outcome !== undefined) log.warn("stopped without ceremony; what was unfinished is taken up at the next start", { why: outcome });
}

async function orderly({ presence, upkeep, channels, dispatchers, refuse, over }: StoppingParts): Promise<void> {
  refuse();
  presence.drain();
  const ends = await Promise.allSettled([...dispatchers.map((dispatcher) => dispatcher.stop(GRACE_MS)), upkeep.stop(), channels.stop()]);
  // What cannot end in order keeps nothing else open: a process that lives on must not go on saying that this node is there.
  await over();
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}
