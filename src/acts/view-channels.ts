import type { ChannelState, ChannelView } from "../contract/channels.ts";
import { type AccountName, accountLease, readStates } from "../records/channels/channel-accounts.ts";
import { accountKey, waitingReplies } from "../records/sessions/outbox.ts";
import type { Reads } from "../store/engine.ts";
import { heldAmong } from "../store/leases.ts";

/**
 * How these accounts are doing. What was said about one that nobody holds now is over: it is `idle`, and its problem is what was in the way
 * when it was tried last.
 */
export async function viewChannels(
  reads: Reads,
  accounts: readonly AccountName[],
  idle: ChannelState = "connecting",
): Promise<ChannelView[]> {
  if (accounts.length === 0) return [];
  const states = new Map((await readStates(reads)).map((row) => [accountKey(row), row]));
  const isHeld = await heldAmong(reads, accounts.map(accountLease));
  const waiting = await waitingReplies(reads);
  return accounts.map(({ platform, account }) => {
    const key = accountKey({ platform, account });
    const row = states.get(key);
    const held = isHeld(accountLease({ platform, account }));
    const { count = 0, oldestMs = null } = waiting.get(key) ?? {};
    return {
      platform,
      account,
      name: row?.name ?? null,
      state: row && held ? row.state : idle,
      problem: row?.problem ?? null,
      since: row?.since ?? null,
      node: held ? (row?.node ?? null) : null,
      waiting: count,
      oldestMs,
    };
  });
}
