import type { Mail, MailCounts, MailList, MailQuery, MailReceive, NewMail, ReceivedMail } from "../../contract/mail.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { listMail } from "./list-mail.ts";
import { boxesOf, MAIL_COLUMNS, MAIL_COLUMNS_WITHOUT_CONTENT, type MailRow, mailOf, receivedOf } from "./mail-rows.ts";
import { type Asked, front, hasMail, lockBoxes, receiveFrom } from "./receive-mail.ts";
import { MAX_ATTEMPTS, NOW, Settling } from "./settling.ts";
import { forgetChains } from "./wakes.ts";

export interface MailLimits {
  /** Unsettled mail in one mailbox. */
  readonly perBox: number;
  /** Unsettled mail of one sender in one mailbox. */
  readonly perSender: number;
  readonly contentBytes: number;
  /** How long a settled mail can still be looked at. */
  readonly keepMs: number;
}

const LIMITS: MailLimits = { perBox: 1_000, perSender: 100, contentBytes: 64 * 1024, keepMs: 30 * 86_400_000 };
const POLL_MS = 500;
const SWEEP_ROWS = 500;
const UNUSED_BOX_MS = 86_400_000;
const TIDY_MS = 60_000;
const NO_MAIL = "there is no such mail";

/** What the gateway knows of a mail, whatever its sender says. */
export interface MailMarks {
  /** Words of somebody the house does not answer to, or of an agent that had read some. */
  readonly external: boolean;
  /** The message of a person that it goes back to; null: it was not sent in a turn. */
  readonly root: string | null;
}

export interface SendOptions {
  /** Asked in the transaction that stores it. Without it, only a guest's mail is external. */
  readonly marks?: (tx: Tx) => Promise<MailMarks>;
  /** Runs in the transaction that stores it. */
  readonly record?: (tx: Tx, id: string) => Promise<void>;
}

export interface ReceiveOptions {
  /** Aborts when whoever waits has left. */
  readonly signal?: AbortSignal;
  /** Runs in the transaction that hands it out; for nothing at all there is none. */
  readonly record?: (tx: Tx, mail: readonly ReceivedMail[]) => Promise<void>;
}

/** For the pulse: whether mail has waited for as long as it may. */
export const MAIL_DUE = sql`(select min(due_at) from mail) <= now_ms()`;

/**
 * Mail from one identity to another, or to whoever has a role.
 *
 *   pending → leased(fence) → acked
 *   leased, and nacked or not acked in time → pending | dead, after five receipts
 *   pending, and its time is up → expired
 */
export class Mailbox {
  readonly #store: Store;
  readonly #newId: NewId;
  readonly #limits: MailLimits;
  readonly #settling: Settling;
  #tidied = Number.NEGATIVE_INFINITY;

  constructor(store: Store, newId: NewId, limits: Partial<MailLimits> = {}) {
    this.#store = store;
    this.#newId = newId;
    this.#limits = { ...LIMITS, ...limits };
    this.#settling = new Settling(store, this.#limits.keepMs);
  }

  async send(caller: Caller, mail: NewMail, { marks, record }: SendOptions = {}): Promise<string> {
    mustBeMember(caller);
    const content = this.#contentOf(mail);
    const id = this.#newId();
    // A full mailbox is an answer, not a failed transaction: a flood must not cost the others of its batch a second try.
    const sent = await this.#store.transact(
      "send mail",
      async (tx) => {
        const known = (await marks?.(tx)) ?? { external: caller.kind === "guest", root: null };
        const stored = await this.#insert(tx, id, caller.name, mail, content, known);
        if (stored) await record?.(tx, id);
        return stored;
      },
      "locked",
    );
    if (!sent) throw this.#full(mail);
    return id;
  }

  /** As part of a larger transaction. Whoever sends several goes by the recipients' names, so that two senders never wait for each other. */
  async sendIn(tx: Tx, caller: Caller, mail: NewMail, marks: MailMarks): Promise<string> {
    mustBeMember(caller);
    const id = this.#newId();
    if (!(await this.#insert(tx, id, caller.name, mail, this.#contentOf(mail), marks))) throw this.#full(mail);
    return id;
  }

  /** Hands out mail to the caller's name and roles, for a time. What is not acked by then comes again. */
  async receive(caller: Caller, request: MailReceive, options: ReceiveOptions = {}): Promise<ReceivedMail[]> {
    mustBeMember(caller);
    const until = performance.now() + request.wait_ms;
    while (true) {
      const seen = this.#store.wake.version("mail");
      const mail = await this.#receiveNow(caller, request, options.record);
      const left = until - performance.now();
      if (mail.length > 0 || left <= 0 || options.signal?.aborted) return mail;
      await this.#store.wake.wait("mail", seen, Math.min(POLL_MS, left), options.signal);
      if (options.signal?.aborted) return [];
    }
  }

  /** The same as part of a larger transaction, and without waiting. */
  async receiveIn(tx: Tx, caller: Caller, asked: Asked): Promise<ReceivedMail[]> {
    mustBeMember(caller);
    const boxes = boxesOf(caller);
    await lockBoxes(tx, boxes);
    return (await receiveFrom(this.#store, this.#settling, tx, boxes, caller.name, asked)).map(receivedOf);
  }

  /** Whether there is something to receive now; a look, without a lock. */
  has(reads: Reads, caller: Caller, urgentOnly = false): Promise<boolean> {
    return hasMail(reads, boxesOf(caller), urgentOnly);
  }

  async ack(caller: Caller, id: string, fence: number): Promise<void> {
    await this.#store.transact("ack mail", (tx) => this.ackIn(tx, caller, id, fence), "locked");
  }

  /** Done, together with everything else in the transaction; refused, with all of it, when the lease has ended. */
  async ackIn(tx: Tx, caller: Caller, id: string, fence: number): Promise<void> {
    mustBeMember(caller);
    const row = await tx.get<MailRow>`update mail set state = 'acked', ${this.#settling.ended}
      where id = ${id} and fence = ${fence} and leased_by = ${caller.name} and state = 'leased' and due_at > now_ms() returning ${MAIL_COLUMNS_WITHOUT_CONTENT}`;
    if (!row) throw await this.#whyNot(tx, caller, id);
    await this.#settling.tell(tx, "mail.acked", caller.name, row);
    // Behind it there may be others of its conversation.
    tx.hint("mail");
  }

  /** The number of the lease that the caller has on it now; undefined: it has none. */
  async leaseIn(tx: Tx, caller: Caller, id: string): Promise<number | undefined> {
    const row = await tx.get<{ fence: number }>`select fence from mail
      where id = ${id} and leased_by = ${caller.name} and state = 'leased' and due_at > now_ms()`;
    return row?.fence;
  }

  async nack(caller: Caller, id: string, fence: number, delayMs: number): Promise<"pending" | "dead"> {
    return this.#store.transact("nack mail", (tx) => this.nackIn(tx, caller, id, fence, delayMs), "locked");
  }

  /** Gives it back, to come again after the delay; after the last try it is dead. `quietly`: nobody is woken for it any more. */
  async nackIn(tx: Tx, caller: Caller, id: string, fence: number, delayMs: number, quietly = false): Promise<"pending" | "dead"> {
    mustBeMember(caller);
    const visibleAt = sql`now_ms() + cast(${delayMs} as bigint)`;
    const row =
      await tx.get<MailRow>`update mail set state = ${delayMs > 0 ? "delayed" : "pending"}, leased_by = null, visible_at = ${visibleAt},
        wake = case when ${quietly ? 1 : 0} = 1 then 0 else wake end, due_at = case when ${delayMs} > 0 and expires_at > ${visibleAt} then ${visibleAt} else expires_at end
      where id = ${id} and fence = ${fence} and leased_by = ${caller.name} and state = 'leased' and due_at > now_ms() returning ${MAIL_COLUMNS_WITHOUT_CONTENT}`;
    if (!row) throw await this.#whyNot(tx, caller, id);
    if (row.attempts >= MAX_ATTEMPTS) {
      await this.#settling.end(tx, [row], "dead");
      return "dead";
    }
    await this.#settling.tell(tx, "mail.returned", caller.name, row, { because: "nacked", delayMs, attempts: row.attempts });
    tx.hint("mail");
    return "pending";
  }

  /** Sender, recipient and readers see how it stands; for anybody else it does not exist. */
  async read(caller: Caller, id: string, reads: Reads = this.#store.read): Promise<Mail> {
    const row = await reads.get<MailRow & { now: number }>`select ${MAIL_COLUMNS}, now_ms() as now from mail where id = ${id}`;
    if (!row || !maySee(caller, row)) throw new Failure("request.not_found", NO_MAIL);
    return mailOf(row, row.now);
  }

  async list(caller: Caller, query: MailQuery): Promise<MailList> {
    if (caller.kind === "channel") throw new Failure("request.forbidden", "a channel takes no part in mail");
    if (query.box === "all" && !seesAll(caller))
      throw new Failure("request.forbidden", "box=all is for operators; ask for in, sent or readable");
    return listMail(this.#store.read, caller, query);
  }

  /** What could be handed out to the caller now, the urgent first, without handing it out. */
  async unread(caller: Caller, max: number, urgentOnly = false): Promise<Mail[]> {
    const rows = await this.#store.read.all<MailRow & { now: number }>`select ${MAIL_COLUMNS}, now_ms() as now from mail
      where id in (${front(boxesOf(caller), max, urgentOnly)}) order by priority desc, seq`;
    return rows.map((row) => mailOf(row, row.now));
  }

  /** Of everything ever sent to this name, as long as it is kept. */
  async counts(recipient: string): Promise<MailCounts> {
    const rows = await this.#store.read.all<{ state: MailRow["state"]; count: number }>`
      select state, count(*) as count from mail where recipient = ${recipient} group by state`;
    const counts = { sent: 0, pending: 0, leased: 0, acked: 0, dead: 0, expired: 0 };
    for (const { state, count } of rows) {
      counts[state === "delayed" ? "pending" : state] += count;
      counts.sent += count;
    }
    return counts;
  }

  /** Takes back what was not acked, settles what has expired, forgets what was settled long ago. Any node may call it, often. */
  async sweep(): Promise<number> {
    const due = await this.#store.read.get`select 1 from mail where due_at <= ${NOW} limit 1`;
    const tidy = performance.now() - this.#tidied > TIDY_MS;
    if (!due && !tidy) return 0;
    if (tidy) this.#tidied = performance.now();
    return this.#store.transact(
      "sweep mail",
      async (tx) => {
        const { dialect } = this.#store;
        await this.#settling.forget(tx, SWEEP_ROWS);
        if (tidy) await forgetChains(dialect, tx, SWEEP_ROWS);
        const unused = sql`select name from mailboxes where used_at < ${NOW} - ${UNUSED_BOX_MS} limit ${SWEEP_ROWS} ${dialect.skipLocked}`;
        if (tidy) await tx.run`delete from mailboxes where name ${dialect.amongFirst(unused)}`;
        return this.#settling.settleDue(tx, sql`order by due_at limit ${SWEEP_ROWS} ${dialect.skipLocked}`);
      },
      "locked",
    );
  }

  async #receiveNow(caller: Caller, request: MailReceive, record: ReceiveOptions["record"]): Promise<ReceivedMail[]> {
    const boxes = boxesOf(caller);
    if (!(await hasMail(this.#store.read, boxes))) return [];
    return this.#store.transact(
      "receive mail",
      async (tx) => {
        const mail = await this.receiveIn(tx, caller, request);
        if (mail.length > 0) await record?.(tx, mail);
        return mail;
      },
      "locked",
    );
  }

  /** False when there is no room: counted while the mailbox is locked, so it is never over its limits. */
  async #insert(tx: Tx, id: string, from: string, mail: NewMail, content: string, marks: MailMarks): Promise<boolean> {
    const { perBox, perSender } = this.#limits;
    await lockBoxes(tx, [mail.to]);
    const row = await tx.get<MailRow>`
      insert into mail (id, seq, box, sender, recipient, conversation, type, content, priority, readers, wake, label, root_id, state, fence, attempts, visible_at,
        due_at, expires_at, created_at)
      select ${id}, ${await this.#store.dialect.nextFence(tx)}, ${mail.to}, ${from}, ${mail.to}, ${mail.conversation ?? ""}, ${mail.type}, ${content},
        cast(${mail.priority === "urgent" ? 1 : 0} as integer), ${JSON.stringify(mail.readers)}, cast(${mail.wake ? 1 : 0} as integer), ${marks.external ? "external" : "trusted"}, cast(${marks.root} as text), 'pending', 0, 0,
        now_ms(), now_ms() + cast(${mail.expires_ms} as bigint), now_ms() + cast(${mail.expires_ms} as bigint), now_ms()
      where (select count(*) from mail where box = ${mail.to}) < ${perBox}
        and (select count(*) from mail where box = ${mail.to} and sender = ${from}) < ${perSender} returning ${MAIL_COLUMNS_WITHOUT_CONTENT}`;
    if (!row) return false;
    for (const reader of mail.readers) await tx.run`insert into mail_readers (reader, seq) values (${reader}, ${row.seq})`;
    await this.#settling.tell(tx, "mail.sent", from, row);
    tx.hint("mail");
    return true;
  }

  #contentOf(mail: NewMail): string {
    const content = JSON.stringify(mail.content);
    const bytes = Buffer.byteLength(content);
    if (bytes <= this.#limits.contentBytes) return content;
    throw new Failure("request.too_large", `content: ${bytes} bytes are too many; a mail holds ${this.#limits.contentBytes}`);
  }

  #full({ to }: NewMail): Failure {
    const { perBox, perSender } = this.#limits;
    return new Failure("mail.full", `the mailbox of ${to} has ${perBox} unread mails, or ${perSender} of yours`, {
      details: { perBox, perSender },
    });
  }

  async #whyNot(tx: Tx, caller: Caller, id: string): Promise<Failure> {
    const row = await tx.get<MailRow>`select ${MAIL_COLUMNS_WITHOUT_CONTENT} from mail where id = ${id}`;
    if (!row || !maySee(caller, row)) return new Failure("request.not_found", NO_MAIL);
    if (!boxesOf(caller).includes(row.recipient)) return new Failure("request.forbidden", "only its recipient can ack or nack this mail");
    return new Failure("mail.stale", "this is not, or no longer, yours to ack", { details: { state: row.state } });
  }
}

function seesAll(caller: Caller): boolean {
  return caller.kind === "operator" || caller.kind === "reader";
}

function maySee(caller: Caller, row: MailRow): boolean {
  if (seesAll(caller)) return true;
  if (caller.kind === "channel") return false;
  const boxes = boxesOf(caller);
  return (
    row.sender === caller.name ||
    boxes.includes(row.recipient) ||
    (JSON.parse(row.readers) as string[]).some((name) => boxes.includes(name))
  );
}

function mustBeMember(caller: Caller): void {
  if (caller.kind === "reader" || caller.kind === "channel")
    throw new Failure("request.forbidden", `a ${caller.kind} token takes no part in mail`);
}
