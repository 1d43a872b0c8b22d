import type { Mail, MailState, ReceivedMail } from "../../contract/mail.ts";
import type { Caller } from "../../kernel/caller.ts";
import { code } from "../../store/sql.ts";

export interface MailRow {
  readonly id: string;
  readonly seq: number;
  readonly sender: string;
  readonly recipient: string;
  /** '' outside any conversation. */
  readonly conversation: string;
  readonly type: string;
  readonly content: string;
  readonly priority: number;
  readonly readers: string;
  readonly wake: number;
  readonly label: ReceivedMail["label"];
  /** The message of a person that it goes back to; null: it was not sent in a turn. */
  readonly root_id: string | null;
  /** `delayed` is pending too, but waits for its time to come again. */
  readonly state: MailState | "delayed";
  readonly fence: number;
  readonly attempts: number;
  readonly leased_by: string | null;
  readonly visible_at: number;
  readonly due_at: number;
  readonly expires_at: number;
  readonly created_at: number;
  readonly first_received_at: number | null;
  readonly settled_at: number | null;
}

export const MAIL_COLUMNS =
  code(`id, seq, sender, recipient, conversation, type, content, priority, readers, wake, label, root_id, state, fence, attempts, leased_by,
  visible_at, due_at, expires_at, created_at, first_received_at, settled_at`);
/** For lists: contents may be large. */
export const MAIL_COLUMNS_WITHOUT_CONTENT =
  code(`id, seq, sender, recipient, conversation, type, 'null' as content, priority, readers, wake, label, root_id, state,
  fence, attempts, leased_by, visible_at, due_at, expires_at, created_at, first_received_at, settled_at`);

/** The mailboxes somebody receives from, in the order in which they are locked. */
export function boxesOf(caller: Caller): string[] {
  return [caller.name, ...caller.roles.map((role) => `role:${role}`)].sort();
}

function letterOf(row: MailRow) {
  return {
    id: row.id,
    from: row.sender,
    to: row.recipient,
    type: row.type,
    content: JSON.parse(row.content) as unknown,
    priority: row.priority > 0 ? ("urgent" as const) : ("normal" as const),
    conversation: row.conversation === "" ? null : row.conversation,
    readers: JSON.parse(row.readers) as string[],
    wake: row.wake === 1,
    label: row.label,
    at: row.created_at,
    expiresAt: row.expires_at,
  };
}

export function receivedOf(row: MailRow): ReceivedMail {
  return { ...letterOf(row), fence: row.fence, attempt: row.attempts, leaseUntil: row.due_at };
}

/** Without the fence: only who received it may ack it. */
export function mailOf(row: MailRow, now: number): Mail {
  const leased = row.state === "leased";
  return {
    ...letterOf(row),
    state: row.state === "delayed" ? "pending" : row.state,
    attempts: row.attempts,
    leasedBy: leased ? row.leased_by : null,
    leaseUntil: leased ? row.due_at : null,
    visibleAt: row.visible_at,
    receivedAt: row.first_received_at,
    settledAt: row.settled_at,
    delayMs: Math.max(0, (row.first_received_at ?? row.settled_at ?? now) - row.created_at),
  };
}
