import type { Address } from "../../deciders/routing/address.ts";
import type { Part } from "../../kernel/channel.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";

/**
 * A reply on its way to the platform. It goes in parts, one after another: a part is intended, sent, recorded.
 *
 *   draft → pending, with the commit of its turn
 *   pending → sent | refused (the platform does not take it) | unknown (nobody knows whether all of it arrived)
 *
 * A part that was intended and is not recorded may have arrived: `intended` says which.
 */
export interface Reply {
  readonly id: string;
  readonly runId: string;
  readonly address: Address;
  readonly text: string;
  /** The platform's id of the message that it answers. */
  readonly answers: string | null;
  /** Paths in the workspace of the run's agent, to be sent after the words. */
  readonly files?: readonly ReplyFile[];
}

/** A file of a reply, kept as a blob: what the agent does with its own afterwards changes nothing. */
export interface ReplyFile {
  readonly name: string;
  readonly mediaType: string;
  readonly blob: string;
}

export interface StoredReply extends Reply {
  readonly state: OutboxState;
  /** How it is cut; null: it was not yet. */
  readonly parts: readonly Part[] | null;
  /** The platform's id of each part that is done with; null: one that may have arrived and is not sent again. */
  readonly sent: readonly (string | null)[];
  readonly intended: number | null;
  readonly unclear: number;
  /** A message of ours that shows the beginning already. */
  readonly draft: string | null;
  /** How long it has been waiting, when this was read. */
  readonly ageMs: number;
}

export type OutboxState = "draft" | "pending" | "sent" | "refused" | "unknown";
export type ReplyEnd = Exclude<OutboxState, "draft" | "pending">;

interface OutboxRow {
  readonly id: string;
  readonly run_id: string;
  readonly address: string;
  readonly body: string;
  readonly state: OutboxState;
  readonly answers: string | null;
  readonly parts: string | null;
  readonly sent: string | null;
  readonly intended: number | null;
  readonly unclear: number;
  readonly draft: string | null;
  readonly files: string | null;
  readonly age_ms: number;
}

/** As accounts are named in one word. */
export function accountKey({ platform, account }: Pick<Address, "platform" | "account">): string {
  return `${platform}/${account}`;
}

export async function addReply(tx: Tx, reply: Reply, state: "draft" | "pending" = "pending"): Promise<void> {
  await tx.run`insert into outbox (id, run_id, address, body, state, created_at, account, answers, files)
    values (${reply.id}, ${reply.runId}, ${JSON.stringify(reply.address)}, ${reply.text}, ${state}, now_ms(), ${accountKey(reply.address)},
      ${reply.answers}, ${reply.files?.length ? JSON.stringify(reply.files) : null})`;
}

/** The message that shows a turn while it runs becomes its reply. Answers its id; undefined: there is none. */
export async function finishDraft(tx: Tx, runId: string, text: string): Promise<string | undefined> {
  const row = await tx.get<{
    id: string;
  }>`update outbox set state = 'pending', body = ${text} where run_id = ${runId} and state = 'draft' returning id`;
  return row?.id;
}

export async function readReply(reads: Reads, id: string): Promise<StoredReply | undefined> {
  const row =
    await reads.get<OutboxRow>`select id, run_id, address, body, state, answers, parts, sent, intended, unclear, draft, files, now_ms() - created_at as age_ms
    from outbox where id = ${id}`;
  return row && storedOf(row);
}

export async function readDraft(reads: Reads, runId: string): Promise<StoredReply | undefined> {
  const row =
    await reads.get<OutboxRow>`select id, run_id, address, body, state, answers, parts, sent, intended, unclear, draft, files, now_ms() - created_at as age_ms
    from outbox where run_id = ${runId} and state = 'draft'`;
  return row && storedOf(row);
}

function storedOf(row: OutboxRow): StoredReply {
  const { id, run_id: runId, body: text, state, answers, intended, unclear, draft, age_ms: ageMs } = row;
  return {
    ...{ id, runId, text, state, answers, intended, unclear, draft, ageMs },
    address: JSON.parse(row.address),
    parts: row.parts === null ? null : JSON.parse(row.parts),
    sent: row.sent === null ? [] : JSON.parse(row.sent),
    files: row.files === null ? [] : JSON.parse(row.files),
  };
}

/** How far it has got. */
export interface Progress {
  readonly parts: readonly Part[];
  readonly sent: readonly (string | null)[];
  readonly intended: number | null;
  readonly unclear: number;
}

export async function keepProgress(tx: Tx, id: string, { parts, sent, intended, unclear }: Progress): Promise<void> {
  await tx.run`update outbox set parts = ${JSON.stringify(parts)}, sent = ${JSON.stringify(sent)}, intended = ${intended}, unclear = ${unclear}
    where id = ${id}`;
}

/** Answers whether it is known now. A delivery that has begun has found its own way. */
export async function recordShown(tx: Tx, id: string, draft: string): Promise<boolean> {
  const changed = await tx.run`update outbox set intended = null, draft = ${draft}
    where id = ${id} and draft is null and (state = 'draft' or (state = 'pending' and intended = 0))`;
  return changed > 0;
}

/** What the draft says by now; it matters only where nobody says anything after it. */
export async function keepShown(tx: Tx, id: string, text: string): Promise<void> {
  await tx.run`update outbox set body = ${text} where id = ${id} and state = 'draft'`;
}

/** Nobody has seen anything of it. */
export async function removeDraft(tx: Tx, id: string): Promise<void> {
  await tx.run`delete from outbox where id = ${id} and state = 'draft' and draft is null`;
}

/** The draft becomes a reply of what it says already, and a word about its end. */
export async function closeDraft(
  tx: Tx,
  runId: string,
  mark: string,
): Promise<{ readonly id: string; readonly address: Address } | undefined> {
  const row = await tx.get<{ id: string; address: string }>`update outbox set state = 'pending', body = body || ${`\n\n${mark}`}
    where run_id = ${runId} and state = 'draft' returning id, address`;
  return row && { id: row.id, address: JSON.parse(row.address) };
}

/** For the pulse: whether there are any. */
export const LEFT_DRAFTS = sql`exists (select 1 from outbox join runs on runs.id = outbox.run_id
  where outbox.state = 'draft' and runs.ended_at is not null)`;

/** Drafts of turns that are over: nobody will go on with them. */
export async function leftDrafts(reads: Reads, most: number): Promise<{ readonly id: string; readonly runId: string }[]> {
  return reads.all`select outbox.id as "id", outbox.run_id as "runId" from outbox join runs on runs.id = outbox.run_id
    where outbox.state = 'draft' and runs.ended_at is not null limit ${most}`;
}

export async function keepDraft(tx: Tx, id: string, intended: number | null, draft: string | null): Promise<void> {
  await tx.run`update outbox set intended = ${intended}, draft = ${draft} where id = ${id} and state = 'draft'`;
}

export interface ReplyEnding {
  readonly state: ReplyEnd;
  /** The platform's ids of its parts. */
  readonly ids: readonly (string | null)[];
  readonly problem: string | null;
}

/** Answers whether it was still on its way. What it was cut into is not needed any more. */
export async function settleReply(tx: Tx, id: string, { state, ids, problem }: ReplyEnding): Promise<boolean> {
  const changed = await tx.run`update outbox set state = ${state}, sent = ${JSON.stringify(ids)}, problem = ${problem}, parts = null,
      intended = null, settled_at = now_ms()
    where id = ${id} and state in ('draft', 'pending')`;
  return changed > 0;
}

/** Replies on their way, by account. */
export async function waitingReplies(reads: Reads): Promise<Map<string, { readonly count: number; readonly oldestMs: number }>> {
  const rows = await reads.all<{ account: string; count: number; oldest_ms: number }>`select account, count(*) as count,
      now_ms() - min(created_at) as oldest_ms
    from outbox where state = 'pending' and account is not null group by account`;
  return new Map(rows.map(({ account, count, oldest_ms: oldestMs }) => [account, { count, oldestMs }]));
}
