import { Failure } from "../kernel/failure.ts";
import { type AccountName, senderName } from "../records/channels/channel-accounts.ts";
import { pairIn, unpairIn } from "../records/channels/pairings.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";

export interface Sender extends AccountName {
  readonly peer: string;
}

/** An owner lets in whoever was told this code. The next message of theirs is answered. */
export async function pairSenderIn(store: Store, tx: Tx, code: string, by: string): Promise<Sender> {
  const sender = await pairIn(tx, code, by);
  // No word about which: a code that was used and one that never was are the same to whoever tries them.
  if (!sender) throw new Failure("pairing.unknown", "there is no such code, or it was used, or its hour is over");
  await tell(store, tx, "sender.paired", sender, by);
  return sender;
}

/** From their next message on, they are a stranger again. */
export async function unpairSenderIn(store: Store, tx: Tx, sender: Sender, by: string): Promise<void> {
  if (!(await unpairIn(tx, sender, sender.peer)))
    throw new Failure("request.not_found", `${senderName(sender)} was not paired`, {
      hint: "`guildhall channel pairings` lists who was. Whoever stands under `allow:` or `owners:` is let in by the config.",
    });
  await tell(store, tx, "sender.removed", sender, by);
}

async function tell(store: Store, tx: Tx, type: "sender.paired" | "sender.removed", { platform, account, peer }: Sender, by: string) {
  await store.ledger.append(tx, { type, actor: by, subject: ["channel", platform, account], data: { peer } });
}
