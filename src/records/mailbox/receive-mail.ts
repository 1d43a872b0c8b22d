import type { MailReceive } from "../../contract/mail.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { MAIL_COLUMNS, type MailRow } from "./mail-rows.ts";
import { NOW, type Settling } from "./settling.ts";

const NOTHING = code("");

/** What somebody wants to be handed out. */
export interface Asked extends Pick<MailReceive, "max" | "visibility_ms"> {
  readonly urgentOnly?: boolean;
  /** Bytes of content together; the first one comes whatever its size. */
  readonly maxBytes?: number;
}

/** Whether there may be something to hand out; a look, without a lock. */
export async function hasMail(reads: Reads, boxes: readonly string[], urgentOnly = false): Promise<boolean> {
  const found = await reads.get`select 1 as found from (${front(boxes, 1, urgentOnly)}) as first
    union all select 1 as found from mail where box in ${list(boxes)} and due_at <= ${NOW} ${urgentOnly ? code("and priority > 0") : NOTHING} limit 1`;
  return found !== undefined;
}

/** In the order of their names: so do all who lock several. Whatever is decided about these boxes is decided one after another. */
export async function lockBoxes(tx: Tx, boxes: readonly string[]): Promise<void> {
  for (const box of boxes)
    await tx.run`insert into mailboxes (name, used_at) values (${box}, now_ms()) on conflict (name) do update set used_at = excluded.used_at`;
}

/** Hands out what is at the front of these boxes, which the caller has locked. */
export async function receiveFrom(
  store: Store,
  settling: Settling,
  tx: Tx,
  boxes: readonly string[],
  who: string,
  { max, visibility_ms: visibilityMs, urgentOnly = false, maxBytes }: Asked,
): Promise<MailRow[]> {
  await settling.settleDue(tx, sql`and box in ${list(boxes)} order by seq ${store.dialect.forUpdate}`);
  const wanted = front(boxes, max, urgentOnly);
  const chosen =
    maxBytes === undefined ? sql`id ${store.dialect.amongFirst(wanted)}` : sql`id in ${list(await fitting(tx, wanted, maxBytes))}`;
  const rows =
    await tx.all<MailRow>`update mail set state = 'leased', fence = ${await store.dialect.nextFence(tx)}, attempts = attempts + 1,
      leased_by = ${who}, due_at = now_ms() + cast(${visibilityMs} as bigint), first_received_at = coalesce(first_received_at, now_ms())
    where state = 'pending' and ${chosen} returning ${MAIL_COLUMNS}`;
  rows.sort((a, b) => b.priority - a.priority || a.seq - b.seq);
  for (const row of rows) await settling.tell(tx, "mail.received", who, row, { attempt: row.attempts });
  return rows;
}

/** The first ones that have room together. The boxes are locked: nobody else takes them in between. */
async function fitting(tx: Tx, wanted: SqlFragment, maxBytes: number): Promise<string[]> {
  const rows = await tx.all<{ id: string; bytes: number }>`select id, octet_length(content) as bytes from mail where id in (${wanted})
    order by priority desc, seq`;
  let left = maxBytes;
  const past = rows.findIndex(({ bytes }, place) => {
    left -= bytes;
    return place > 0 && left < 0;
  });
  return (past < 0 ? rows : rows.slice(0, past)).map(({ id }) => id);
}

/**
 * Urgent mail first, then the oldest; of one sender and conversation nothing while an earlier one is with somebody, or waits for its
 * time to come again.
 */
export function front(boxes: readonly string[], max: number, urgentOnly = false): SqlFragment {
  const here = list(boxes);
  return sql`select m.id from mail as m left join (
      select box, sender, conversation, priority, min(seq) as seq from mail where box in ${here} and state in ('leased', 'delayed')
      group by box, sender, conversation, priority
    ) as held on held.box = m.box and held.sender = m.sender and held.conversation = m.conversation and held.priority = m.priority
    where m.box in ${here} and m.state = 'pending' and m.due_at > ${NOW} ${urgentOnly ? code("and m.priority > 0") : NOTHING} and (held.seq is null or m.seq < held.seq)
    order by m.priority desc, m.seq limit ${code(String(Math.trunc(max)))}`;
}
