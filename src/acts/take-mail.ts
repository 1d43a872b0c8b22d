import type { Mail, MailReceive, ReceivedMail } from "../contract/mail.ts";
import type { Caller } from "../kernel/caller.ts";
import type { Mailbox, ReceiveOptions } from "../records/mailbox/mailbox.ts";
import type { Pools } from "../records/pools/pools.ts";
import type { Store } from "../store/store.ts";

/**
 * Mail for whoever acts outside a turn. Who is shown words from outside has seen them: what it writes afterwards rests on them, as it
 * does after an entry of that kind. In a turn the turn itself carries that.
 */
export interface TakeParts {
  readonly store: Store;
  readonly mailbox: Mailbox;
  readonly pools: Pools;
}

export function takeMail(
  { mailbox, pools }: TakeParts,
  caller: Caller,
  request: MailReceive,
  options: ReceiveOptions,
): Promise<ReceivedMail[]> {
  return mailbox.receive(caller, request, {
    ...options,
    record: async (tx, mail) => {
      if (isNews(caller, mail)) await pools.noteExternalIn(tx, caller);
      await options.record?.(tx, mail);
    },
  });
}

/** What it could take, without taking it. */
export async function lookAtUnread(parts: TakeParts, caller: Caller, max: number): Promise<Mail[]> {
  return seen(parts, caller, await parts.mailbox.unread(caller, max));
}

export async function lookAtMail(parts: TakeParts, caller: Caller, id: string): Promise<Mail> {
  const [mail] = await seen(parts, caller, [await parts.mailbox.read(caller, id)]);
  return mail as Mail;
}

async function seen({ store, pools }: TakeParts, caller: Caller, mail: Mail[]): Promise<Mail[]> {
  if (isNews(caller, mail)) await store.transact("note external", (tx) => pools.noteExternalIn(tx, caller), "locked");
  return mail;
}

/** One's own words are none from outside. */
function isNews({ name }: Caller, mail: readonly Pick<Mail, "label" | "from">[]): boolean {
  return mail.some(({ label, from }) => label === "external" && from !== name);
}
