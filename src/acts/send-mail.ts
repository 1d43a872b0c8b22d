import type { NewMail, SentMail } from "../contract/mail.ts";
import type { Caller } from "../kernel/caller.ts";
import type { Mailbox, MailMarks } from "../records/mailbox/mailbox.ts";
import type { Pools } from "../records/pools/pools.ts";
import { rootOf } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import { type WakeParts, wakeForMailIn } from "./wake-agent.ts";

export interface MailParts extends WakeParts {
  readonly mailbox: Mailbox;
  readonly pools: Pools;
}

/** Sends a mail, and starts the turn that it asks for. `record` keeps the answer with its effect. */
export async function sendMail(
  parts: MailParts,
  caller: Caller,
  mail: NewMail,
  record?: (tx: Tx, sent: SentMail) => Promise<void>,
): Promise<SentMail> {
  let marks: MailMarks = { external: true, root: null };
  let sent: SentMail | undefined;
  await parts.mailbox.send(caller, mail, {
    marks: async (tx) => {
      marks = await marksOf(parts.pools, tx, caller);
      return marks;
    },
    record: async (tx, id) => {
      sent = await answerOf(parts, tx, caller, mail, id, marks);
      await record?.(tx, sent);
    },
  });
  return sent as SentMail;
}

/** The same as part of a larger transaction. `external`: whether the turn it is sent in carries words from outside. */
export async function sendMailIn(parts: MailParts, tx: Tx, caller: Caller, mail: NewMail, external = false): Promise<SentMail> {
  const known = await marksOf(parts.pools, tx, caller);
  const marks = { ...known, external: external || known.external };
  return answerOf(parts, tx, caller, mail, await parts.mailbox.sendIn(tx, caller, mail, marks), marks);
}

/** What a mail of this caller is, sent now: never what it says of itself. */
export async function marksOf(pools: Pools, tx: Tx, caller: Caller): Promise<MailMarks> {
  const external = caller.kind === "guest" || (await pools.hasReadExternalIn(tx, caller));
  return { external, root: caller.run === null ? null : await rootOf(tx, caller.run) };
}

async function answerOf(
  parts: MailParts,
  tx: Tx,
  caller: Caller,
  { to, wake }: NewMail,
  id: string,
  { root }: MailMarks,
): Promise<SentMail> {
  return wake ? { id, woken: await wakeForMailIn(parts, tx, { id, to, from: caller.name, root }) } : { id };
}
