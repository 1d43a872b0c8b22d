import { setImmediate as nextTick, setTimeout as sleep } from "node:timers/promises";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure, isFailure } from "../../kernel/failure.ts";
import type { Tx } from "../engine.ts";
import { tooSlow } from "../open-transaction.ts";
import type { SqlValue } from "../sql.ts";
import type { WakeTopic } from "../wake.ts";
import type { Connection } from "./connection.ts";
import { isBusy, needsReopen, sqliteFailure } from "./sqlite-errors.ts";

/** A batch is closed at this size or age, so that a flood of writers does not make the first of them wait. */
const BATCH_OPERATIONS = 1024;
const BATCH_MS = 20;
/** Nothing slow may happen inside a transaction; a body that takes this long is waiting for something else. */
const BODY_MS = 5_000;
/** Another program (an offline command, a backup) may hold the write lock for a moment; after this long it is stuck. */
const BUSY_MS = 30_000;

interface Operation {
  readonly label: string;
  readonly body: (tx: Tx) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** How it went, and what it will be told if the batch commits. */
  outcome: Outcome | undefined;
}

interface Outcome {
  readonly failed: boolean;
  readonly value: unknown;
  readonly topics: readonly WakeTopic[];
}

export interface GroupCommitOptions {
  readonly path: string;
  readonly open: () => Connection;
  readonly reached: ReachedPoint;
  readonly onCommit: (topics: ReadonlySet<WakeTopic>) => void;
}

/**
 * The one writer. Waiting operations share a transaction, and so an fsync. Nobody hears anything, success or refusal, before the
 * COMMIT: a refusal may rest on rows of the same batch.
 *
 *   idle → begun → body* → committed → acknowledged → idle
 *   a body failed that had already written: … → rolled back → begun → (savepoint → body → release | rollback to)* → committed
 *
 * A savepoint for every operation from the start cost 4 of the 10 µs that SQLite needs for two rows; failures after a write are
 * rare, so only a batch that has one is done again with them. Bodies may run more than once (see Store.transact).
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #connection: Connection | undefined;
  #waiting: Operation[] = [];
  #draining: Promise<void> | undefined;
  /** The body that runs now: since when, and how to go on without it. */
  #running: { readonly since: number; readonly giveUp: () => void } | undefined;
  #closed = false;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
    this.#connection = options.open();
  }

  transact<T>(label: string, body: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new Failure("store.unavailable", "the store is closed"));
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ label, body, resolve: resolve as (value: unknown) => void, reject, outcome: undefined });
      this.#draining ??= this.#drain();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#draining;
    this.#connection?.close();
    this.#connection = undefined;
  }

  async #drain(): Promise<void> {
    while (true) {
      // One turn of the event loop: requests that are already in the sockets join this batch.
      await nextTick();
      if (this.#waiting.length === 0) break;
      await this.#batch();
    }
    this.#draining = undefined;
  }

  async #batch(): Promise<void> {
    const taken: Operation[] = [];
    const stopWatching = this.#watchBodies();
    let committing = false;
    try {
      let connection = await this.#begin();
      this.#options.reached("store.batch.begun");
      if ((await this.#runTogether(connection, taken)) === "spoiled") {
        connection.control("ROLLBACK");
        connection = await this.#begin();
        for (const operation of taken) await this.#runAlone(connection, operation);
      }
      this.#options.reached("store.commit.before");
      committing = true;
      connection.control("COMMIT");
    } catch (error) {
      this.#refuse(error, taken, committing);
      return;
    } finally {
      stopWatching();
    }
    this.#options.reached("store.commit.after");
    this.#acknowledge(taken);
  }

  #acknowledge(taken: readonly Operation[]): void {
    const topics = new Set<WakeTopic>();
    for (const { outcome, resolve, reject } of taken) {
      this.#options.reached("store.acknowledge.before");
      if (outcome?.failed) reject(outcome.value);
      else resolve(outcome?.value);
      for (const topic of outcome?.topics ?? []) topics.add(topic);
    }
    if (topics.size > 0) this.#options.onCommit(topics);
  }

  /** Takes the write lock. Another program's lock is waited for without blocking the event loop; nobody hears of it. */
  async #begin(): Promise<Connection> {
    const deadline = performance.now() + BUSY_MS;
    for (let wait = 1; ; wait = Math.min(50, wait * 2)) {
      try {
        this.#connection ??= this.#options.open();
        this.#connection.control("BEGIN IMMEDIATE");
        return this.#connection;
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error;
        await sleep(wait);
      }
    }
  }

  /** Spoiled: a body failed, and what it had written is still there among what the others wrote. */
  async #runTogether(connection: Connection, taken: Operation[]): Promise<"whole" | "spoiled"> {
    const started = performance.now();
    while (this.#waiting.length > 0 && taken.length < BATCH_OPERATIONS && performance.now() - started < BATCH_MS) {
      const operation = this.#waiting.shift() as Operation;
      taken.push(operation);
      if ((await this.#run(connection, operation)) === "spoiled") return "spoiled";
    }
    return "whole";
  }

  async #runAlone(connection: Connection, operation: Operation): Promise<void> {
    // One that was too slow has had its time; its refusal stands.
    if (operation.outcome?.failed && isFailure(operation.outcome.value, "store.transaction_too_slow")) return;
    connection.control("SAVEPOINT operation");
    if ((await this.#run(connection, operation)) === "spoiled") connection.control("ROLLBACK TO operation");
    connection.control("RELEASE operation");
  }

  async #run(connection: Connection, operation: Operation): Promise<"whole" | "spoiled"> {
    const tx = new SqliteTx(operation.label, connection);
    try {
      operation.outcome = { failed: false, value: await this.#withinTime(operation, tx), topics: tx.topics };
      return "whole";
    } catch (error) {
      operation.outcome = { failed: true, value: sqliteFailure(error, this.#options.path), topics: [] };
      // Some errors (disk full, I/O) end the whole transaction: then nothing of the batch is left to commit.
      if (!connection.db.isTransaction || needsReopen(error)) throw error;
      return tx.wrote ? "spoiled" : "whole";
    } finally {
      tx.end();
      this.#running = undefined;
      this.#options.reached("store.batch.operation-done");
    }
  }

  /** The body's answer, unless it waits for something that is not the database: then the others must not wait with it. */
  #withinTime(operation: Operation, tx: Tx): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(tooSlow(operation.label));
      this.#running = { since: performance.now(), giveUp };
      operation.body(tx).then(resolve, reject);
    });
  }

  /** One timer for the whole batch; one for each operation was a good part of what we add to SQLite's own time. */
  #watchBodies(): () => void {
    const look = (): void => {
      const left = this.#running ? this.#running.since + BODY_MS - performance.now() : BODY_MS;
      if (left <= 0) this.#running?.giveUp();
      timer = setTimeout(look, left > 0 ? left : BODY_MS);
    };
    let timer = setTimeout(look, BODY_MS);
    return () => clearTimeout(timer);
  }

  /**
   * Nobody is acknowledged, nor told a refusal that may rest on rows of this batch. After an I/O error the next batch begins on a
   * fresh connection. If it came from the commit, its frames are in the log already, and a restart may find them whole.
   */
  #refuse(error: unknown, taken: readonly Operation[], committing: boolean): void {
    const failure =
      committing && needsReopen(error)
        ? new Failure("store.outcome_unknown", `the commit to ${this.#options.path} could not be made durable`, { cause: error })
        : sqliteFailure(error, this.#options.path);
    try {
      if (this.#connection?.db.isTransaction) this.#connection.control("ROLLBACK");
    } catch {
      // The connection is given up below.
    }
    if (needsReopen(error) || this.#connection?.db.isTransaction) {
      try {
        this.#connection?.close();
      } catch {
        // A connection that cannot even be closed is forgotten; its locks end with its file handle.
      }
      this.#connection = undefined;
    }
    for (const { reject } of taken.length > 0 ? taken : this.#waiting.splice(0)) reject(failure);
  }
}

class SqliteTx implements Tx {
  readonly label: string;
  readonly topics: WakeTopic[] = [];
  wrote = false;
  #connection: Connection | undefined;

  constructor(label: string, connection: Connection) {
    this.label = label;
    this.#connection = connection;
  }

  get open(): boolean {
    return this.#connection !== undefined;
  }

  end(): void {
    this.#connection = undefined;
  }

  async all<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row[]> {
    this.wrote ||= !isSelect(strings);
    return this.#live().all<Row>(strings, values);
  }

  async get<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row | undefined> {
    this.wrote ||= !isSelect(strings);
    return this.#live().get<Row>(strings, values);
  }

  async run(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number> {
    this.wrote = true;
    return this.#live().run(strings, values);
  }

  async insert(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number> {
    this.wrote = true;
    return this.#live().insert(strings, values);
  }

  hint(topic: WakeTopic): void {
    if (!this.topics.includes(topic)) this.topics.push(topic);
  }

  #live(): Connection {
    if (!this.#connection) throw new Failure("store.transaction_too_slow", `transaction "${this.label}" has already ended`);
    return this.#connection;
  }
}

function isSelect(strings: TemplateStringsArray): boolean {
  return /^\s*select\b/.test(strings[0] as string);
}
