import type { Tx } from "../../store/engine.ts";
import { list, type SqlFragment } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { MAIL_COLUMNS_WITHOUT_CONTENT, type MailRow } from "./mail-rows.ts";

/** After so many receipts without an ack nobody gets it any more. */
export const MAX_ATTEMPTS = 5;

export type MailEvent = "mail.sent" | "mail.received" | "mail.acked" | "mail.returned" | "mail.died" | "mail.expired";

export async function tell(store: Store, tx: Tx, type: MailEvent, actor: string, row: MailRow, more: object = {}): Promise<void> {
  const data = {
    id: row.id,
    from: row.sender,
    to: row.recipient,
    type: row.type,
    priority: row.priority > 0 ? "urgent" : "normal",
    ...more,
  };
  await store.ledger.append(tx, { type, actor, subject: ["mail", row.recipient, row.id], data });
}

/** Takes back what was not acked in time, and settles what has died of it or expired. Only rows that this transaction locks. */
export async function settleDue(store: Store, tx: Tx, among: SqlFragment): Promise<number> {
  const due = await tx.all<MailRow>`select ${MAIL_COLUMNS_WITHOUT_CONTENT} from mail
    where settled_at is null and due_at <= now_ms() ${among}`;
  if (due.length === 0) return 0;
  const dead = due.filter((row) => row.state === "leased" && row.attempts >= MAX_ATTEMPTS);
  const expired = due.filter((row) => !dead.includes(row) && row.expires_at <= row.due_at);
  const back = due.filter((row) => !dead.includes(row) && !expired.includes(row));
  await settle(store, tx, dead, "dead");
  await settle(store, tx, expired, "expired");
  if (back.length > 0) {
    await tx.run`update mail set state = 'pending', leased_by = null, due_at = expires_at where id in ${list(back.map(({ id }) => id))}`;
    for (const row of back)
      await tell(store, tx, "mail.returned", "guildhall", row, { because: "not acked in time", attempts: row.attempts });
    tx.hint("mail");
  }
  return due.length;
}

export async function settle(store: Store, tx: Tx, rows: readonly MailRow[], state: "dead" | "expired"): Promise<void> {
  if (rows.length === 0) return;
  await tx.run`update mail set state = ${state}, leased_by = null, settled_at = now_ms() where id in ${list(rows.map(({ id }) => id))}`;
  const type = state === "dead" ? "mail.died" : "mail.expired";
  for (const row of rows) await tell(store, tx, type, "guildhall", row, { attempts: row.attempts });
  tx.hint("mail");
}
