import type { Entry } from "../contract/pools.ts";
import type { Caller } from "../kernel/caller.ts";
import type { Claims } from "../records/claims/claims.ts";
import type { Mailbox } from "../records/mailbox/mailbox.ts";
import type { PoolWrite } from "../records/pools/decide-write.ts";
import type { Pools } from "../records/pools/pools.ts";
import type { WriteOptions } from "../records/pools/write-entries.ts";
import type { Tx } from "../store/engine.ts";

export interface MailToAck {
  readonly id: string;
  readonly fence: number;
}

export interface HeldClaim {
  readonly resource: string;
  readonly fence: number;
}

export interface WriteConditions {
  /** Mail that is done with when this is written. */
  readonly acks?: readonly MailToAck[] | undefined;
  /** Claims without which it may not be written. */
  readonly claims?: readonly HeldClaim[] | undefined;
}

/**
 * What came of a piece of work, all or nothing: a mail whose lease has ended, or a claim that was lost, takes the writes back. Locks:
 * claims, then what a write locks, then mail.
 */
export async function writeAndAckIn(
  { pools, mailbox, claims }: { readonly pools: Pools; readonly mailbox: Mailbox; readonly claims: Claims },
  tx: Tx,
  caller: Caller,
  pool: string,
  writes: readonly PoolWrite[],
  { acks = [], claims: held = [] }: WriteConditions,
  options: WriteOptions = {},
): Promise<Entry[]> {
  for (const { resource, fence } of held.toSorted((a, b) => a.fence - b.fence)) await claims.guard(tx, caller, resource, fence);
  const written = writes.length === 0 ? [] : await pools.writeIn(tx, caller, pool, writes, options);
  for (const { id, fence } of acks.toSorted((a, b) => (a.id < b.id ? -1 : 1))) await mailbox.ackIn(tx, caller, id, fence);
  return written;
}
