import type { Guests } from "../records/access/guests.ts";
import type { Claims } from "../records/claims/claims.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";

export interface GuestParts {
  readonly store: Store;
  readonly guests: Guests;
  readonly claims: Claims;
}

const GATEWAY = "guildhall";
const AT_ONCE = 50;

/**
 * A guest leaves. What it holds under a name that the gateway chose is free at once: nobody will bear that name again and come back
 * for it. A name that was asked for may come back, and its claims wait for it until they expire.
 */
export async function endGuestIn(
  tx: Tx,
  { guests, claims }: GuestParts,
  name: string,
  actor: string,
  onlyIfGone = false,
): Promise<boolean> {
  const ended = await guests.endIn(tx, name, actor, onlyIfGone);
  if (ended?.numbered) await claims.releaseAllIn(tx, actor, name);
  return ended !== undefined;
}

/** Guests whose process is silent or whose token was revoked. Any node may call it, often. */
export async function sweepGuests(parts: GuestParts): Promise<number> {
  let ended = 0;
  for (const name of await parts.guests.gone(AT_ONCE))
    if (await parts.store.transact("end guest", (tx) => endGuestIn(tx, parts, name, GATEWAY, true), "locked")) ended++;
  return ended;
}
