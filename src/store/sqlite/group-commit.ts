import { setImmediate as nextTick, setTimeout as sleep } from "node:timers/promises";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../engine.ts";
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
}

interface Outcome {
  readonly operation: Operation;
  readonly failed: boolean;
  readonly value: unknown;
}

export interface GroupCommitOptions {
  readonly path: string;
  readonly open: () => Connection;
  readonly reached: ReachedPoint;
  readonly onCommit: (topics: ReadonlySet<WakeTopic>) => void;
}

/**
 * The one writer. Waiting operations share a transaction and so an fsync; each has a savepoint of its own, so that one
 * that fails leaves the others whole. Nobody hears anything, success or refusal, before the COMMIT: a refusal may rest on
 * rows of the same batch.
 *
 *   idle → begun → (savepoint → body → release | rollback to)* → committed → acknowledged → idle
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #connection: Connection | undefined;
  #waiting: Operation[] = [];
  #draining: Promise<void> | undefined;
  #closed = false;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
    this.#connection = options.open();
  }

  transact<T>(label: string, body: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new Failure("store.unavailable", "the store is closed"));
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ label, body, resolve: resolve as (value: unknown) => void, reject });
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
    const outcomes: Outcome[] = [];
    const topics = new Set<WakeTopic>();
    try {
      const connection = await this.#begin();
      this.#options.reached("store.batch.begun");
      await this.#runBodies(connection, outcomes, topics);
      this.#options.reached("store.commit.before");
      connection.control("COMMIT");
    } catch (error) {
      this.#refuse(error, outcomes);
      return;
    }
    this.#options.reached("store.commit.after");
    for (const { operation, failed, value } of outcomes) {
      this.#options.reached("store.acknowledge.before");
      if (failed) operation.reject(value);
      else operation.resolve(value);
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

  async #runBodies(connection: Connection, outcomes: Outcome[], topics: Set<WakeTopic>): Promise<void> {
    const started = performance.now();
    while (this.#waiting.length > 0 && outcomes.length < BATCH_OPERATIONS) {
      const operation = this.#waiting.shift() as Operation;
      const tx = new SqliteTx(operation.label, connection);
      try {
        connection.control("SAVEPOINT operation");
        const value = await withinTime(operation, tx);
        connection.control("RELEASE operation");
        outcomes.push({ operation, failed: false, value });
        for (const topic of tx.topics) topics.add(topic);
      } catch (error) {
        outcomes.push({ operation, failed: true, value: sqliteFailure(error, this.#options.path) });
        // Some errors (disk full, I/O) end the whole transaction: then nothing of the batch is left to commit.
        if (!connection.db.isTransaction || needsReopen(error)) throw error;
        connection.control("ROLLBACK TO operation");
        connection.control("RELEASE operation");
      } finally {
        tx.end();
      }
      this.#options.reached("store.batch.operation-done");
      if (performance.now() - started > BATCH_MS) return;
    }
  }

  /** Nothing of the batch was stored. Everybody is told; after an I/O error the next batch begins on a fresh connection. */
  #refuse(error: unknown, outcomes: readonly Outcome[]): void {
    const failure = sqliteFailure(error, this.#options.path);
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
    if (outcomes.length === 0) for (const operation of this.#waiting.splice(0)) operation.reject(failure);
    for (const { operation, failed, value } of outcomes) operation.reject(failed ? value : failure);
  }
}

/** The body's answer, unless it waits for something that is not the database: then the others must not wait with it. */
async function withinTime(operation: Operation, tx: Tx): Promise<unknown> {
  const running = operation.body(tx);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Failure("store.transaction_too_slow", `transaction "${operation.label}" took too long`)), BODY_MS);
  });
  try {
    return await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
  }
}

class SqliteTx implements Tx {
  readonly label: string;
  readonly topics: WakeTopic[] = [];
  #connection: Connection | undefined;

  constructor(label: string, connection: Connection) {
    this.label = label;
    this.#connection = connection;
  }

  end(): void {
    this.#connection = undefined;
  }

  async all<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row[]> {
    return this.#open().all<Row>(strings, values);
  }

  async get<Row>(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<Row | undefined> {
    return this.#open().get<Row>(strings, values);
  }

  async run(strings: TemplateStringsArray, ...values: SqlValue[]): Promise<number> {
    return this.#open().run(strings, values);
  }

  hint(topic: WakeTopic): void {
    if (!this.topics.includes(topic)) this.topics.push(topic);
  }

  #open(): Connection {
    if (!this.#connection) throw new Failure("store.transaction_too_slow", `transaction "${this.label}" has already ended`);
    return this.#connection;
  }
}
