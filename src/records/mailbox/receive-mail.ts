import type { MailReceive } from "../../contract/mail.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { MAIL_COLUMNS, type MailRow } from "./mail-rows.ts";
import { settleDue, tell } from "./settle-due.ts";

/** Those of these mailboxes in which there may be something to hand out; a look, without a lock. */
export async function boxesWithMail(reads: Reads, boxes: readonly string[]): Promise<string[]> {
  const rows = await reads.all<{ recipient: string }>`select distinct recipient from mail
    where recipient in ${list(boxes)} and settled_at is null and (due_at <= now_ms() or (state = 'pending' and visible_at <= now_ms()))`;
  return rows.map(({ recipient }) => recipient).sort();
}

/** The moment at which the boxes were locked. Everything that enters or leaves the boxes' lines does so before or after. */
export async function lockBoxes(tx: Tx, boxes: readonly string[]): Promise<number> {
  let now = 0;
  for (const box of boxes) {
    const row = await tx.get<{ used_at: number }>`insert into mailboxes (name, used_at) values (${box}, now_ms())
      on conflict (name) do update set used_at = excluded.used_at returning used_at`;
    now = row?.used_at as number;
  }
  return now;
}

/**
 * Hands out what is at the front: urgent mail first, then the oldest; of one sender and conversation nothing while an earlier one is
 * with somebody, or waits for its time to come again. The caller has locked the boxes.
 */
export async function receiveFrom(
  store: Store,
  tx: Tx,
  boxes: readonly string[],
  now: number,
  who: string,
  { max, visibility_ms: visibilityMs }: MailReceive,
): Promise<MailRow[]> {
  await settleDue(store, tx, sql`and recipient in ${list(boxes)} order by seq ${store.dialect.forUpdate}`);
  const rows =
    await tx.all<MailRow>`update mail set state = 'leased', fence = ${await store.dialect.nextFence(tx)}, attempts = attempts + 1,
      leased_by = ${who}, due_at = now_ms() + cast(${visibilityMs} as bigint), first_received_at = coalesce(first_received_at, now_ms())
    where state = 'pending' and id ${store.dialect.amongFirst(front(boxes, now, max))} returning ${MAIL_COLUMNS}`;
  rows.sort((a, b) => b.priority - a.priority || a.seq - b.seq);
  for (const row of rows) await tell(store, tx, "mail.received", who, row, { attempt: row.attempts });
  return rows;
}

/** One moment for all of it: a mail whose time comes while the rows are read must not be past both conditions. */
export function front(boxes: readonly string[], now: number, max: number): SqlFragment {
  const here = list(boxes);
  const moment = sql`cast(${now} as bigint)`;
  return sql`select m.id from mail as m left join (
      select recipient, sender, conversation, priority, min(seq) as seq from mail
      where recipient in ${here} and settled_at is null and (state = 'leased' or visible_at > ${moment})
      group by recipient, sender, conversation, priority
    ) as held on held.recipient = m.recipient and held.sender = m.sender and held.conversation = m.conversation and held.priority = m.priority
    where m.recipient in ${here} and m.settled_at is null and m.state = 'pending' and m.visible_at <= ${moment} and m.due_at > ${moment}
      and (held.seq is null or m.seq < held.seq)
    order by m.priority desc, m.seq limit ${code(String(Math.trunc(max)))}`;
}
