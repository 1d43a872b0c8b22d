import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEvent } from "../../contract/events.ts";
import type { Caller } from "../../kernel/caller.ts";
import { boxesOf } from "../../records/mailbox/mail-rows.ts";
import type { Pace } from "./pace.ts";
import { CLAIMS_URI, entryUri, MAIL_URI } from "./resource-uri.ts";
import type { McpParts } from "./tool.ts";

/** What changes within this time is told once. */
const GATHER_MS = 20;
const POOL_CHANGES: readonly string[] = ["pool.written", "pool.deleted", "pool.expired", "pool.retracted", "pool.endorsed"];

export interface Listener {
  readonly caller: Caller;
  /** The last event it need not be told of. */
  readonly from: number;
  readonly signal: AbortSignal;
  readonly pace: Pace;
  wants(uri: string): boolean;
  tell(uri: string): Promise<void>;
  /** Everything up to this event has been told. */
  told?(seq: number): void;
}

/**
 * Follows the ledger for one connection, however many resources it has subscribed to, and tells which of them have changed. What the
 * caller may not read is not told of. A slow reader is told of each change once, when it has room.
 */
export async function followUpdates(parts: McpParts, listener: Listener): Promise<void> {
  const { signal, pace } = listener;
  const changed = new Set<string>();
  let last = listener.from;
  let telling = false;
  const tellAll = async (): Promise<void> => {
    telling = true;
    while (changed.size > 0 && !signal.aborted) {
      await sleep(GATHER_MS, undefined, { ref: false });
      const upTo = last;
      const uris = [...changed];
      changed.clear();
      for (const uri of uris) {
        await pace.room(signal);
        if (signal.aborted) return;
        await listener.tell(uri);
      }
      listener.told?.(upTo);
    }
    telling = false;
  };
  for await (const event of parts.store.follow(listener.from, signal)) {
    for (const uri of await changedBy(parts, listener, event)) changed.add(uri);
    last = event.seq;
    if (telling) continue;
    if (changed.size === 0) listener.told?.(last);
    else tellAll().catch((error: unknown) => parts.log.warn("updates are not told", { error: String(error) }));
  }
}

async function changedBy(parts: McpParts, { caller, wants }: Listener, event: LedgerEvent): Promise<string[]> {
  const [kind, name = ""] = event.subject;
  if (kind === "claim") return wants(CLAIMS_URI) ? [CLAIMS_URI] : [];
  if (kind === "mail") return boxesOf(caller).includes(name) && wants(MAIL_URI) ? [MAIL_URI] : [];
  if (kind !== "pool" || !POOL_CHANGES.includes(event.type)) return [];
  const keys = keysOf(event).filter((key) => wants(entryUri(name, key)));
  if (keys.length === 0) return [];
  return (await parts.pools.readable(caller, name, keys)).map((key) => entryUri(name, key));
}

function keysOf(event: LedgerEvent): string[] {
  const { keys } = event.data as { keys?: readonly { readonly key: string }[] };
  return (keys ?? []).map(({ key }) => key);
}
