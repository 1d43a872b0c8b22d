import type { Address } from "../../deciders/routing/address.ts";
import type { Said } from "../../kernel/model.ts";
import type { Scope } from "../../kernel/scope.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { scopeKey } from "../../store/keys.ts";
import type { Search } from "../../store/search.ts";
import { type SqlFragment, sql } from "../../store/sql.ts";

/** Where what was said is found by its words. */
export const TRANSCRIPT_DOCUMENTS = "transcript";
/** What of an entry can be found: cutting a longer text into words would keep everybody waiting. */
const INDEXED_CHARACTERS = 20_000;
/** What is read of a conversation at once: a hundred messages may be a hundred megabytes. */
export const READ_BYTES = 2_000_000;
/** Entries that are read without adding up first how long they are: each of them is short then. */
const FEW = 64;

/** What a turn belongs to. */
export interface TranscriptPlace {
  readonly agent: string;
  readonly sessionKey: string;
  readonly epoch: number;
}

/** Something that was said, as a later turn is told of it. */
export interface SaidBefore extends Said {
  readonly position: number;
  /** The run whose turn it was said in. */
  readonly turn: string;
  /** Who speaks, where several may; null: there is only one. */
  readonly speaker: string | null;
}

/** Which part of an epoch: entries after one position, and up to another. */
export interface TranscriptPart {
  readonly after?: number;
  readonly upto?: number;
}

interface SaidRow<Body = string> {
  readonly position: number;
  readonly role: Said["role"];
  readonly body: Body;
  readonly turn: string;
  readonly address: string | null;
}

/** The newest entries of an epoch, oldest first: at most `limit`, and no more text than a turn can be asked to hold. */
export async function readTranscript(
  reads: Reads,
  sessionKey: string,
  epoch: number,
  limit: number,
  { after = 0, upto = Number.MAX_SAFE_INTEGER }: TranscriptPart = {},
): Promise<SaidBefore[]> {
  const within = sql`session_key = ${sessionKey} and ${inEpoch(epoch, after, upto)}`;
  return (await readWhole(reads, within, Math.min(limit, FEW))) ?? (await readFitting(reads, within, limit));
}

/** All of it in one look, where it is few and short; undefined: it is not. Nearly always it is, and every turn begins with it. */
async function readWhole(reads: Reads, within: SqlFragment, most: number): Promise<SaidBefore[] | undefined> {
  const rows = await saidIn<string | null>(
    reads,
    sql`select position, role, run_id, case when octet_length(body) <= ${READ_BYTES / FEW} then body end as body from transcript
      where ${within} order by epoch desc, position desc limit ${most + 1}`,
  );
  const isWhole = (row: SaidRow<string | null>): row is SaidRow => row.body !== null;
  return rows.length <= most && rows.every(isWhole) ? rows.map(saidOf) : undefined;
}

async function readFitting(reads: Reads, within: SqlFragment, limit: number): Promise<SaidBefore[]> {
  const newest = sql`(select position, octet_length(body) as bytes from transcript
    where ${within} order by epoch desc, position desc limit ${limit + 1}) as newest`;
  // Mostly all of it fits, and then nothing needs to be added up entry by entry, which takes longer than reading them.
  const size = await reads.get<{
    entries: number;
    bytes: number;
  }>`select count(*) as entries, cast(coalesce(sum(bytes), 0) as bigint) as bytes
    from ${newest}`;
  const fits = size !== undefined && size.entries <= limit && size.bytes <= READ_BYTES;
  const all = fits ? sql`select position from ${newest}` : fitting(newest, limit);
  const rows = await saidIn<string>(
    reads,
    sql`select position, role, run_id, body from transcript where ${within} and position in (${all})`,
  );
  return rows.map(saidOf);
}

/** A program that speaks with an agent as with a model is one, wherever it speaks; what comes over a channel says itself who speaks. */
async function saidIn<Body>(reads: Reads, entries: SqlFragment): Promise<SaidRow<Body>[]> {
  const rows = await reads.all<SaidRow<Body>>`select t.position, t.role, t.body, coalesce(r.merged_into, t.run_id) as turn,
      case when r.request is null and r.origin is null then r.address end as address
    from (${entries}) as t left join runs as r on r.id = t.run_id`;
  // Here it takes a fraction of what it takes a database, which carries the texts along.
  return rows.sort((a, b) => a.position - b.position);
}

function saidOf({ position, role, body, turn, address }: SaidRow): SaidBefore {
  const speaker = role === "user" && address !== null ? speakerOf(JSON.parse(address) as Address) : null;
  return { role, text: body, position, turn, speaker };
}

/** Whether anything stands between two positions of an epoch. */
export async function hasEntries(reads: Reads, sessionKey: string, epoch: number, after: number, before: number): Promise<boolean> {
  const row = await reads.get`select 1 from transcript where session_key = ${sessionKey} and ${inEpoch(epoch, after, before - 1)} limit 1`;
  return row !== undefined;
}

/**
 * A turn whose owners all died is written down late, when the next epoch may have begun: positions alone do not tell epochs apart. As pairs,
 * since SQLite would take a range of positions through all epochs.
 */
function inEpoch(epoch: number, after: number, upto: number): SqlFragment {
  // Of what was said lately there is little, in whatever epoch.
  if (after > 0) return sql`epoch = ${epoch} and position > ${after} and position <= ${upto}`;
  return sql`(epoch, position) > (cast(${epoch} as bigint), cast(${after} as bigint))
    and (epoch, position) <= (cast(${epoch} as bigint), cast(${upto} as bigint))`;
}

/** Null where only one person speaks. */
export function speakerOf({ chatType, peer }: Pick<Address, "chatType" | "peer">): string | null {
  return chatType === "dm" ? null : peer;
}

/** Positions of the newest entries that may be read at once: one in any case, and more while their text is not too long together. */
export function fitting(newest: SqlFragment, limit: number): SqlFragment {
  return sql`select position from (select position, row_number() over (order by position desc) as place,
    sum(bytes) over (order by position desc) as total from ${newest}) as counted
    where place <= ${limit} and (place = 1 or total <= ${READ_BYTES})`;
}

/**
 * Turns of a session run one after another (its lane), so the next position is never contested. With each entry goes what it is
 * found by: nothing is found that is not there. `run` of an entry: the message it came with, where it is not the turn's own.
 */
export async function appendTranscript(
  tx: Tx,
  search: Search,
  place: TranscriptPlace,
  runId: string,
  entries: readonly (Said & { readonly run?: string })[],
): Promise<void> {
  const { agent, sessionKey, epoch } = place;
  const last = await tx.get<{ position: number }>`select position from transcript
    where session_key = ${sessionKey} order by position desc limit 1`;
  let position = last?.position ?? 0;
  for (const { role, text, run = runId } of entries) {
    position++;
    await tx.run`insert into transcript (session_key, position, role, body, run_id, at, epoch, indexed)
      values (${sessionKey}, ${position}, ${role}, ${text}, ${run}, now_ms(), ${epoch}, 1)`;
    await indexEntry(tx, search, agent, sessionKey, position, text);
  }
}

export function indexEntry(tx: Tx, search: Search, agent: string, sessionKey: string, position: number, text: string): Promise<void> {
  return search.add(tx, {
    collection: TRANSCRIPT_DOCUMENTS,
    id: `${position}@${sessionKey}`,
    scope: scopeOf(agent, sessionKey),
    text: text.slice(0, INDEXED_CHARACTERS).toWellFormed(),
  });
}

/** Refuses a name that is too long for the tables, before anything rests on it. */
export function refuseLongName(agent: string, sessionKey: string): void {
  scopeKey(scopeOf(agent, sessionKey));
}

function scopeOf(agent: string, sessionKey: string): Scope {
  return ["agent", agent, sessionKey];
}
