import type { Entry } from "../contract/pools.ts";
import type { Caller } from "../kernel/caller.ts";
import type { Mailbox } from "../records/mailbox/mailbox.ts";
import type { PoolWrite } from "../records/pools/decide-write.ts";
import type { Pools } from "../records/pools/pools.ts";
import type { WriteOptions } from "../records/pools/write-entries.ts";
import type { Tx } from "../store/engine.ts";

export interface MailToAck {
  readonly id: string;
  readonly fence: number;
}

/** What came of a mail and that it is done with, all or nothing: a mail whose lease has ended takes the writes back. */
export async function writeAndAckIn(
  { pools, mailbox }: { readonly pools: Pools; readonly mailbox: Mailbox },
  tx: Tx,
  caller: Caller,
  pool: string,
  writes: readonly PoolWrite[],
  acks: readonly MailToAck[],
  options: WriteOptions = {},
): Promise<Entry[]> {
  const written = writes.length === 0 ? [] : await pools.writeIn(tx, caller, pool, writes, options);
  for (const { id, fence } of acks.toSorted((a, b) => (a.id < b.id ? -1 : 1))) await mailbox.ackIn(tx, caller, id, fence);
  return written;
}
