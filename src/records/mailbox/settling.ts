import type { Tx } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { MAIL_COLUMNS_WITHOUT_CONTENT, type MailRow } from "./mail-rows.ts";

/** After so many receipts without an ack nobody gets it any more. */
export const MAX_ATTEMPTS = 5;
/** As a subquery it is asked once; for every row anew it could not be looked up in an index, and on SQLite would call us for each. */
export const NOW = code("(select now_ms())");

type MailEvent = "mail.sent" | "mail.received" | "mail.acked" | "mail.returned" | "mail.died" | "mail.expired";

/** What time does to mail, and how mail ends. */
export class Settling {
  readonly #store: Store;
  readonly #keepMs: number;

  constructor(store: Store, keepMs: number) {
    this.#store = store;
    this.#keepMs = keepMs;
  }

  /** What is set when a mail is settled: it is in nobody's box any more, and due to be forgotten. */
  get ended(): SqlFragment {
    return sql`box = null, settled_at = now_ms(), due_at = now_ms() + cast(${this.#keepMs} as bigint)`;
  }

  async tell(tx: Tx, type: MailEvent, actor: string, row: MailRow, more: object = {}): Promise<void> {
    const priority = row.priority > 0 ? "urgent" : "normal";
    const about = { id: row.id, from: row.sender, to: row.recipient, type: row.type, priority, label: row.label };
    await this.#store.ledger.append(tx, { type, actor, subject: ["mail", row.recipient, row.id], data: { ...about, ...more } });
  }

  /** Takes back what was not acked in time or has waited long enough, and settles what has died of it or expired. Only rows that this locks. */
  async settleDue(tx: Tx, among: SqlFragment): Promise<number> {
    const due = await tx.all<MailRow>`select ${MAIL_COLUMNS_WITHOUT_CONTENT} from mail where box is not null and due_at <= ${NOW} ${among}`;
    if (due.length === 0) return 0;
    const fates = Map.groupBy(due, fateOf);
    await this.end(tx, fates.get("dead") ?? [], "dead");
    await this.end(tx, fates.get("expired") ?? [], "expired");
    const back = fates.get("back") ?? [];
    if (back.length > 0) {
      await tx.run`update mail set state = 'pending', leased_by = null, due_at = expires_at where id in ${list(back.map(({ id }) => id))}`;
      const silent = back.filter(({ state }) => state === "leased");
      for (const row of silent)
        await this.tell(tx, "mail.returned", "guildhall", row, { because: "not acked in time", attempts: row.attempts });
    }
    tx.hint("mail");
    return due.length;
  }

  async end(tx: Tx, rows: readonly MailRow[], state: "dead" | "expired"): Promise<void> {
    if (rows.length === 0) return;
    await tx.run`update mail set state = ${state}, leased_by = null, ${this.ended} where id in ${list(rows.map(({ id }) => id))}`;
    const type = state === "dead" ? "mail.died" : "mail.expired";
    for (const row of rows) await this.tell(tx, type, "guildhall", row, { attempts: row.attempts });
    tx.hint("mail");
  }

  /** Removes what was settled long ago. */
  async forget(tx: Tx, limit: number): Promise<void> {
    const { dialect } = this.#store;
    const old = sql`select id from mail where box is null and due_at <= ${NOW} order by due_at limit ${limit} ${dialect.skipLocked}`;
    const gone = await tx.all<{ seq: number }>`delete from mail where id ${dialect.amongFirst(old)} returning seq`;
    if (gone.length > 0) await tx.run`delete from mail_readers where seq in ${list(gone.map(({ seq }) => seq))}`;
  }
}

function fateOf(row: MailRow): "dead" | "expired" | "back" {
  if (row.state === "leased" && row.attempts >= MAX_ATTEMPTS) return "dead";
  return row.expires_at <= row.due_at ? "expired" : "back";
}
