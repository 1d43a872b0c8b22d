import type { Clock } from "../kernel/clock.ts";
import type { SqlFragment, SqlValue } from "./sql.ts";
import type { Reach, Wake, WakeTopic } from "./wake.ts";

/** Reads of committed rows, one statement at a time. */
export interface Reads {
  all<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row[]>;
  get<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row | undefined>;
}

/** An open transaction. It ends with the body it was handed to; later use is an error. */
export interface Tx extends Reads {
  readonly label: string;
  /** Until its body has ended. */
  readonly open: boolean;
  /** Runs a statement and answers how many rows it changed. */
  run(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number>;
  /**
   * Inserts exactly one row and answers its number. The statement is a constant one, without ON CONFLICT, and ends in
   * `returning <the table's integer primary key>`.
   */
  insert(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number>;
  /** Wakes whoever waits for this topic, after the commit: on all nodes, or on this one alone. */
  hint(topic: WakeTopic, reach?: Reach): void;
  /** Is called as soon as it is committed, in the order of the commits. Absent: others write too, and nobody here knows their order. */
  readonly afterCommit?: (act: () => void) => void;
}

/**
 * `serializable` (default): the body runs as if it were alone, on both databases.
 * `locked`: on PostgreSQL read committed; for bodies that lock every row they decide on, or leave the decision to a unique key.
 * A table is guarded in one way only. Those of the store (work, lanes, leases, idempotency) and of every record so far are locked;
 * serializable is for a body that decides on rows it cannot name beforehand.
 */
export type Isolation = "serializable" | "locked";

/**
 * `at once` (default): whoever is told of it can rely on it after a power cut. `with others`: after a crash of the process, and after a
 * power cut as soon as anything that was committed later is, or some moments have passed. For what means nothing by itself, and may be done again: who has claimed
 * something, that a turn has begun, an answer of a model that only looks around, what a pure call has answered; whatever follows from it is written after it. On SQLite it saves an fsync, for
 * which everybody waits; PostgreSQL makes no difference.
 */
export type Lasts = "at once" | "with others";

export interface Dialect {
  readonly name: "sqlite" | "postgres";
  readonly forUpdate: SqlFragment;
  readonly skipLocked: SqlFragment;
  /** `in (query)`, for a query that is run exactly once, before anything is changed. */
  amongFirst(query: SqlFragment): SqlFragment;
  /** An expression for a number larger than every fence given out before, for ever. */
  nextFence(tx: Tx): Promise<SqlFragment>;
  /** Holds everybody else's migration off until the transaction ends. */
  lockMigrations(tx: Tx): Promise<void>;
}

export interface NewIndex {
  readonly name: string;
  /** `create index …` or `create unique index …`. */
  readonly statement: string;
  /** Asked when it is our turn: another node may have made it. */
  isDone(): Promise<boolean>;
}

/** What a database must be able to do; everything else in this room is written once, on top of it. */
export interface Engine {
  readonly dialect: Dialect;
  readonly reads: Reads;
  readonly wake: Wake;
  /** The database's clock, where it is the one of this machine. */
  readonly clock?: Clock;
  transact<T>(label: string, body: (tx: Tx) => Promise<T>, isolation?: Isolation, lasts?: Lasts): Promise<T>;
  /** A body of exactly one statement, which is a transaction by itself: on PostgreSQL it saves two of three round trips. */
  single<T>(label: string, body: (tx: Tx) => Promise<T>, lasts?: Lasts): Promise<T>;
  /** Makes an index while others go on writing, for as long as it takes. Absent: it is made in a transaction, as everything else. */
  makeIndex?(index: NewIndex): Promise<void>;
  /** Several reads of one moment. */
  snapshot<T>(body: (reads: Reads) => Promise<T>): Promise<T>;
  /** Wakes whoever waits for this topic on other nodes. */
  hintOthers(topic: WakeTopic): void;
  close(): Promise<void>;
}
