import type { EventType, LedgerEvent } from "../contract/events.ts";
import { decodeScope, encodeScope, type Scope, scopeUpperBound } from "../kernel/scope.ts";
import type { Engine, Reads, Tx } from "./engine.ts";
import { scopeKey } from "./keys.ts";
import { code, type SqlFragment, sql } from "./sql.ts";

export interface NewEvent {
  readonly type: EventType;
  readonly actor: string;
  readonly subject: Scope;
  readonly causedBy?: number | null;
  readonly data?: unknown;
}

interface EventRow {
  readonly seq: number;
  readonly at: number;
  readonly type: EventType;
  readonly actor: string;
  readonly caused_by: number | null;
  readonly subject: string;
  readonly data: string;
}

/** Well above what is told between one fsync and the next, also where 64 turns at once each make 50 pure calls. */
const LOST_AT_MOST = 10_000;
/** Marks of writers in pg_locks: the high 16 bits of the lock's number tell whose schema it is, the low 48 are a sequence number. */
const MARK_SPACE = code("(hashtext(current_schema())::bigint & 32767)");
const LAST_DRAWN = code("(select case when is_called then last_value else 0 end from ledger_seq)");

/**
 * The order of events, as readers may trust it. On SQLite there is one writer, and numbers commit in order. On PostgreSQL a
 * transaction draws its numbers before it commits, so a smaller number may become visible after a larger one. Therefore every
 * writer first takes a shared advisory lock whose number is the last sequence value before its own; a reader reads the last
 * value, then the marks, then events below both. A writer it did not see in the marks draws its numbers after the last value
 * was read, so they lie above the horizon; one that was gone had already committed. Writers never wait for one another.
 */
export class Ledger {
  readonly #engine: Engine;
  /** Transactions that have taken their mark: it bounds every number they will draw, and locks are dear. */
  readonly #marked = new WeakSet<Tx>();
  /** Is told of what was committed here, in its order, where the database allows it. What others have written in between is missing. */
  onCommitted: ((event: LedgerEvent) => void) | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Adds events to the open transaction and answers their sequence numbers, in order. */
  async append(tx: Tx, ...events: readonly NewEvent[]): Promise<number[]> {
    tx.hint("ledger");
    const seqs: number[] = [];
    for (const { type, actor, subject, causedBy = null, data = null } of events) {
      const at = this.#engine.clock?.now();
      const written = JSON.stringify(data);
      const seq = await this.#insert(tx, at, type, actor, causedBy, scopeKey(subject), written);
      seqs.push(seq);
      if (at !== undefined && this.onCommitted)
        tx.afterCommit?.(() => this.onCommitted?.({ seq, at, type, actor, causedBy, subject, data: JSON.parse(written) }));
    }
    return seqs;
  }

  /**
   * For the one daemon on a SQLite file, before it writes: after an end without order, numbers that were told before they were on the disk (see
   * `Lasts`) may have gone with the power. Whoever was told of them must not miss others under the same numbers.
   */
  async skipLostNumbers(): Promise<void> {
    await this.#engine.transact("skip lost numbers", async (tx) => {
      const last = await tx.get<{ type: string }>`select type from ledger order by seq desc limit 1`;
      if (last && last.type !== "daemon.stopped")
        await tx.run`update sqlite_sequence set seq = seq + ${LOST_AT_MOST} where name = 'ledger'`;
    });
  }

  #insert(
    tx: Tx,
    at: number | undefined,
    type: string,
    actor: string,
    causedBy: number | null,
    subject: string,
    data: string,
  ): Promise<number> {
    if (at !== undefined) {
      return tx.insert`insert into ledger (at, type, actor, caused_by, subject, data)
        values (${at}, ${type}, ${actor}, ${causedBy}, ${subject}, ${data}) returning seq`;
    }
    if (this.#marked.has(tx)) {
      return tx.insert`insert into ledger (seq, at, type, actor, caused_by, subject, data)
        values (nextval('ledger_seq'), now_ms(), ${type}, ${actor}, ${causedBy}, ${subject}, ${data}) returning seq`;
    }
    this.#marked.add(tx);
    // The mark comes first: `nextval` runs for the row that the mark's scan yields.
    return tx.insert`with mark as materialized (
        select pg_advisory_xact_lock_shared((${MARK_SPACE} << 48) | ${LAST_DRAWN}) as taken)
      insert into ledger (seq, at, type, actor, caused_by, subject, data)
      select nextval('ledger_seq'), now_ms(), ${type}, ${actor}, cast(${causedBy} as bigint), ${subject}, ${data} from mark returning seq`;
  }

  /** The largest number up to which nothing more will appear. */
  async horizon(): Promise<number> {
    if (this.#engine.dialect.name === "sqlite") {
      const row = await this.#engine.reads.get<{ seq: number | null }>`select max(seq) as seq from ledger`;
      return row?.seq ?? 0;
    }
    // The last number must be read before the marks. A lateral aggregate that depends on it cannot be evaluated earlier.
    const row = await this.#engine.reads.get<{ horizon: number }>`
      with last as materialized (select ${LAST_DRAWN} as drawn)
      select least(last.drawn, marks.lowest) as horizon from last cross join lateral (
        select min(((classid::bigint & 65535) << 32) | objid::bigint) as lowest from pg_locks
        where locktype = 'advisory' and objsubid = 1 and (classid::bigint >> 16) = ${MARK_SPACE} and last.drawn >= 0
          and database = (select oid from pg_database where datname = current_database())) as marks`;
    return row?.horizon ?? 0;
  }

  /** The number after which so many follow, or as many as there are. Numbers have gaps. */
  async beforeLast(count: number): Promise<number> {
    const horizon = await this.horizon();
    const row = await this.#engine.reads.get<{ first: number | null }>`select min(seq) as first from
      (select seq from ledger where seq <= cast(${horizon} as bigint) order by seq desc limit ${count}) as newest`;
    return row?.first == null ? horizon : row.first - 1;
  }

  /** Events after `seq` in order, whole: none of them will ever gain a predecessor. */
  async read(after: number, limit: number, subject: Scope = []): Promise<LedgerEvent[]> {
    // One writer: what is there has all its predecessors.
    if (this.#engine.dialect.name === "sqlite") {
      if (subject.length > 0) return readEvents(this.#engine.reads, sql`seq > ${after}`, limit, subject);
      // Every commit is followed by this one: as a text of its own it needs not be put together each time.
      const rows = await this.#engine.reads.all<EventRow>`select seq, at, type, actor, caused_by, subject, data from ledger
        where seq > ${after} order by seq limit ${limit}`;
      return rows.map(eventOf);
    }
    const horizon = await this.horizon();
    return horizon <= after ? [] : readEvents(this.#engine.reads, sql`seq > ${after} and seq <= ${horizon}`, limit, subject);
  }
}

export async function readEvents(reads: Reads, range: SqlFragment, limit: number, subject: Scope = []): Promise<LedgerEvent[]> {
  const prefix = encodeScope(subject);
  const about = prefix === "" ? code("") : sql`and subject >= ${prefix} and subject < ${scopeUpperBound(prefix)}`;
  const rows = await reads.all<EventRow>`
    select seq, at, type, actor, caused_by, subject, data from ledger where ${range} ${about} order by seq limit ${limit}`;
  return rows.map(eventOf);
}

function eventOf(row: EventRow): LedgerEvent {
  return {
    seq: row.seq,
    at: row.at,
    type: row.type,
    actor: row.actor,
    causedBy: row.caused_by,
    subject: decodeScope(row.subject),
    data: JSON.parse(row.data),
  };
}
